// Takes back releases that failed within their bake time: a new generation with their newest settled releases, else the newest
// older generation that is allowed, by the restore that follows any refusal. Where neither exists the policy stays, and the state is
// critical. A pause or a hold does not stop it: they keep new policy out, and this removes policy that fails.

import { bakeOf } from '../../core/config/config.js';
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { isWritError, type WritError } from '../../core/errors.js';
import { affectsGroup, changedPaths } from '../../core/release/affected-groups.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { restorePrevious } from '../activation/restore.js';
import { type ActivePolicy, findNewReleases, readActivePolicy } from '../generations/generation-contents.js';
import { chooseRollbackTarget } from '../generations/rollback-target.js';
import { bundleBefore, bundleMoved, type CycleEnd, noteBundles } from '../job/cycle-result.js';
import { endOf, type Job, withJob } from '../job/job.js';
import { newCycleId } from '../job/progress.js';
import { createRecorder } from '../job/record.js';
import { withHolds } from '../select/holds-and-blocks.js';
import { bakeError, type FailedRelease, isBlamed } from '../settled/bake-failure.js';
import { withLostContacts, withLostSince } from '../settled/contact-ledger.js';
import { wasTakenBack, withRestored } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import type { LostContact } from '../state/ledger.js';
import { recordBakeFailures } from '../state/refusals.js';
import { retryWithReserve, retryWithReserveAsync, tolerateDiskErrors } from '../state/restore-memory.js';
import { isDiskError } from '../state/state-file.js';
import { findSettledPolicy } from './settled-policy.js';
import { isAcceptedByChecks, type PlacedPolicy, placeSettled } from './settled-target.js';

/**
 * Takes the failed releases back in a cycle of its own. Its caller has the host for itself.
 * @returns the end of that cycle; undefined where nothing was moved: a block, or nothing to go back to
 * @throws WritError DISK_*, STATE_DAMAGED
 */
export function restoreSettled(host: Host, failed: readonly FailedRelease[]): Promise<CycleEnd | undefined> {
  const options = { cycle: newCycleId(), trigger: 'pending', firstStep: 'reset' } as const;
  return withJob(host, options, async (job) => {
    const active = readActivePolicy(host.paths);
    if (active === undefined || failed.length === 0 || host.ledger.read().blocked !== undefined)
      return undefined;
    const target = await placeTarget(job, active, failed);
    if (target === undefined) return undefined;
    job.record.fromGeneration = active.generation.number;
    await moveBack(job, { active, target, failed });
    return endOf(job);
  });
}

/**
 * Writes the automatic rollback of a command's start to the history: by `writ`, with reason BAKE_FAILED. There is no agent then.
 * A history that cannot be written is only logged.
 */
export function recordBakeRollback(host: Host, end: CycleEnd): void {
  createRecorder().record(host, end, { by: 'writ', reason: 'BAKE_FAILED' });
}

interface Restoring {
  readonly active: ActivePolicy;
  readonly target: PlacedPolicy;
  readonly failed: readonly FailedRelease[];
}

/** @returns the generation to go back to, on disk; undefined where there is none that the checks accept */
async function placeTarget(
  job: Job,
  active: ActivePolicy,
  failed: readonly FailedRelease[],
): Promise<PlacedPolicy | undefined> {
  const { host } = job;
  const settled = await findSettledPolicy(
    host,
    active,
    failed.map(({ bundle }) => bundle),
  );
  if (settled !== undefined) {
    const placed = await placeOrNone(job, active, settled);
    if (placed !== undefined) return placed;
  }
  const older = await olderGeneration(host, active, failed);
  if (older === undefined) return undefined;
  const staging = retryWithReserve(host, () => job.area.directory('older'));
  const { number } = older.generation;
  const isAccepted = await isAcceptedByChecks(job, {
    active,
    bundles: older.bundles,
    generation: number,
    staging,
  });
  return isAccepted ? { generation: number, bundles: older.bundles } : undefined;
}

/** A disk without space for another generation leaves those that are there. */
async function placeOrNone(
  job: Job,
  active: ActivePolicy,
  settled: Parameters<typeof placeSettled>[2],
): Promise<PlacedPolicy | undefined> {
  try {
    return await retryWithReserveAsync(job.host, () => placeSettled(job, active, settled));
  } catch (error) {
    if (!isDiskError(error)) throw error;
    job.host.log.error({ err: error }, 'the settled releases could not be placed as a new generation');
    return undefined;
  }
}

/** The newest generation that was active before, without any of the failed releases. */
async function olderGeneration(
  host: Host,
  active: ActivePolicy,
  failed: readonly FailedRelease[],
): Promise<ActivePolicy | undefined> {
  const isAllowed = ({ bundles }: ActivePolicy): boolean =>
    failed.every(({ bundle, bake }) => {
      const release = bundles.get(bundle)?.record.release;
      return release !== undefined && release.manifest.digest !== bake.manifestDigest;
    });
  try {
    return await chooseRollbackTarget(host, active, { force: 'no', refused: 'skipped', isAllowed });
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'a release failed in its bake time, and nothing can be restored');
    return undefined;
  }
}

interface Failing {
  readonly refusal: WritError;
  readonly releases: readonly ReleaseInfo[];
  readonly failed: readonly FailedRelease[];
}

/**
 * A worker may have died of something else: the release is tried once more after a bake time. The second time, and for any
 * other failure, the usual wait of a refusal begins.
 */
function rememberFailed(host: Host, { refusal, releases, failed }: Failing): string[] {
  const isLost = ({ bundle }: ReleaseInfo): boolean =>
    failed.some((one) => one.bundle === bundle && one.bake.failure.cause === 'CONTACT_LOST');
  rememberLost(host, releases.filter(isLost), failed);
  const groups = failed.flatMap(({ bake }) => bake.failure.groups);
  // Remembered as refused, an innocent member of a set would keep out the corrected release of the member that failed.
  const judged = releases.filter((one) => !isLost(one) && isBlamed(host.config, one.bundle, groups));
  const ledger = host.ledger.read();
  recordBakeFailures(host, judged, {
    error: refusal,
    retryMs: ({ bundle, serial, manifest }) => {
      const cause = failed.find((one) => one.bundle === bundle)?.bake.failure.cause;
      const isFirst = !wasTakenBack(ledger, bundle, { serial, manifestDigest: manifest.digest });
      const mayBeChance = cause === 'WORKER_DIED' && isFirst;
      return mayBeChance ? bakeOf(host.config, bundle).forMs : host.config.refusals.retryMs;
    },
  });
  const restored = judged.map(({ bundle, serial, manifest }) => {
    return { bundle, serial, manifestDigest: manifest.digest };
  });
  host.ledger.write(withRestored(ledger, restored, host.clock.nowMs()));
  return releases.map(({ bundle }) => bundle);
}

/** The server may have been away: that is no verdict yet, and the releases are only held. */
function rememberLost(host: Host, releases: readonly ReleaseInfo[], failed: readonly FailedRelease[]): void {
  if (releases.length === 0) return;
  const atMs = host.clock.nowMs();
  // A member of a set that changed earlier has no attempts of its own.
  const attempts = failed.flatMap(({ bake }) => bake.contact ?? []);
  const hadContact = attempts.some((one) => one.hadContact);
  const tries = Math.max(0, ...attempts.map((one) => one.tries));
  const lost = releases.map(({ bundle, serial, manifest }): [string, LostContact] => {
    return [bundle, { serial, manifestDigest: manifest.digest, atMs, hadContact, tries, state: 'asking' }];
  });
  const holds = lost.map(([bundle, { serial, manifestDigest }]) => {
    return { bundle, serial, manifestDigest, by: 'writ', reason: 'contact with the server was lost', atMs };
  });
  const ledger = withLostContacts(host.ledger.read(), Object.fromEntries(lost));
  host.ledger.write(withHolds(ledger, holds));
}

async function moveBack(
  { host, progress, area, record }: Job,
  { active, target, failed }: Restoring,
): Promise<void> {
  const { generation, bundles } = target;
  const from = { from: generation, to: active.generation.number };
  const releases = findNewReleases(host.paths, from);
  const changed = changedPaths(bundles, active.bundles);
  const error = bakeError(host, failed);
  const failing = failed.flatMap(({ bake }) => bake.failure.groups);
  // A full disk after the move must not make the move unknown to the history.
  using _ = tolerateDiskErrors(host);
  const moved = await restorePrevious(
    host,
    progress,
    {
      ...{ kind: 'update', ...from, releases, staging: area.path() },
      groups: host.groups.filter(
        ({ config }) => failing.includes(config.name) || affectsGroup(config, changed),
      ),
      // A stop request does not end a restore: workers would be left between two generations.
      signal: new AbortController().signal,
      onRefused: (refusal) => rememberFailed(host, { refusal, releases, failed }),
    },
    { error },
  );
  record.moves.push(moved);
  // Workers may take long to come back, and contact returns with them.
  host.ledger.write(withLostSince(host.ledger.read(), releases, host.clock.nowMs()));
  const results: BundleResult[] = releases.map((one) =>
    bundleMoved(bundleBefore(one, bundles.get(one.bundle)?.record.release.serial), moved),
  );
  noteBundles(record, results);
}

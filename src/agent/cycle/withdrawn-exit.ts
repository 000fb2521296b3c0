// Moves away from an active release that its publisher has withdrawn, when the cycle did not activate the offered replacement
// because it is refused, held or deferred. Otherwise a host that was offline while a usable replacement was offered would stay
// on the withdrawn release.
import { computeBackoffMs } from '../../core/backoff.js';
import type { BundleResult, CycleResult } from '../../core/cycle/cycle-report.js';
import { isImplicitRefusal, isWritError, orUndefined } from '../../core/errors.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { withdraws } from '../../core/release/withdrawn.js';
import { findSettledPolicy } from '../bake/settled-policy.js';
import { type ActivePolicy, readActivePolicy } from '../generations/generation-contents.js';
import { chooseRollbackTarget } from '../generations/rollback-target.js';
import type { Offers } from '../select/find-offers.js';
import { isPaused } from '../select/pause.js';
import type { LeavableBundles } from '../select/select-releases.js';
import type { Host } from '../state/host.js';
import { findRefusal } from '../state/refusal-rules.js';
import type { PolicyExit } from './policy-exit.js';
import { type ExitTarget, rollBack } from './rollback.js';

/** A refused rollback moves the link twice, so the next attempt waits for a minute, doubling up to an hour. */
const backoff = { firstMs: 60_000, maxMs: 3_600_000 };

interface Tried {
  readonly generation: number;
  readonly tries: number;
  readonly atMs: number;
}

/**
 * @returns the exit rollback of withdrawn releases, with the alarm ACTIVE_WITHDRAWN; afterCycle gives undefined without an
 *   attempt Attempts to leave one generation wait 1 minute, doubling to an hour. They are counted in memory, until the process
 *   exits
 */
export function createWithdrawnExit(): PolicyExit {
  let tried: Tried | undefined;
  const beginAttempt = (generation: number, nowMs: number): 'begun' | 'too-soon' => {
    const before = tried?.generation === generation ? tried : undefined;
    if (before !== undefined && nowMs < before.atMs + computeBackoffMs(before.tries, backoff))
      return 'too-soon';
    tried = { generation, tries: (before?.tries ?? 0) + 1, atMs: nowMs };
    return 'begun';
  };
  return {
    alarm: 'ACTIVE_WITHDRAWN',
    afterCycle: async (host, { result }, signal) => {
      if (signal.aborted || isPaused(host) || host.ledger.read().blocked !== undefined) return undefined;
      const active = orUndefined(() => readActivePolicy(host.paths));
      const withdrawn = active === undefined ? [] : findWithdrawn(host, active, result);
      if (active === undefined || withdrawn.length === 0) return undefined;
      const { number } = active.generation;
      if (beginAttempt(number, host.clock.monotonicMs()) === 'too-soon') return undefined;
      const leaving = withdrawn.map(({ bundle }) => bundle);
      const target = await findTarget(host, active, leaving);
      if (target === undefined) return undefined;
      const names = withdrawn.map(({ bundle, serial }) => `${bundle} ${serial}`).join(', ');
      const reason = `${names}: withdrawn by the publisher`.slice(0, 200);
      return rollBack(host, { exit: { leaving, target }, by: 'writ', reason, signal });
    },
  };
}

/** @returns the withdrawn active releases for which this cycle activated no replacement */
function findWithdrawn(
  host: Host,
  { bundles }: ActivePolicy,
  { bundles: results }: CycleResult,
): ReleaseInfo[] {
  const { holds } = host.ledger.read();
  return host.config.bundles.flatMap(({ name, channel }) => {
    // An operator activated it by force, although it was withdrawn.
    if (holds.some((one) => one.bundle === name && one.isForced === true)) return [];
    const active = bundles.get(name)?.record.release;
    const offered = orUndefined(() => host.client.knownTarget(name, channel))?.release;
    const result = results.find(({ bundle }) => bundle === name);
    if (active === undefined || offered === undefined || result === undefined) return [];
    return withdraws(offered, active) && isReplacementRejected(result, { offered, active }) ? [active] : [];
  });
}

/**
 * Finds the bundles with a withdrawn release that a retained one can replace, before a cycle selects. Verifies retained releases only
 * if the offered replacement is refused. A pause permits no such move, and the cycle reports the pause.
 * @returns the names of these bundles
 */
export async function findLeavable(
  host: Host,
  active: ActivePolicy | undefined,
  offers: Offers,
): Promise<LeavableBundles> {
  const leavable = new Set<string>();
  if (active === undefined || isPaused(host)) return leavable;
  const { refusals } = host.refusals.read();
  for (const [bundle, { record }] of active.bundles) {
    const offer = offers.get(bundle);
    if (offer === undefined || isWritError(offer) || !withdraws(offer.release, record.release)) continue;
    if (findRefusal(refusals, bundle, offer.release.manifest.digest) === undefined) continue;
    if ((await findTarget(host, active, [bundle])) !== undefined) leavable.add(bundle);
  }
  return leavable;
}

/**
 * Whether the cycle gave up the offered replacement. A failed download is retried at the next poll. A replacement with an older
 * serial is only given up after a verdict: a busy worker is no reason to use another release than the publisher's.
 */
function isReplacementRejected(
  { outcome, problem }: BundleResult,
  { offered, active }: { readonly offered: ReleaseInfo; readonly active: ReleaseInfo },
): boolean {
  if (problem === undefined) return false;
  if (offered.serial > active.serial) return ['rejected', 'rolled-back', 'deferred'].includes(outcome);
  return ['rejected', 'rolled-back'].includes(outcome) && !isImplicitRefusal(problem.code);
}

/** Finds a replacement. @returns undefined without one; this is not recorded, because the next cycle may find one */
async function findTarget(
  host: Host,
  active: ActivePolicy,
  leaving: readonly string[],
): Promise<ExitTarget | undefined> {
  const bundles = await findSettledPolicy(host, active, leaving);
  if (bundles !== undefined) return { kind: 'settled', bundles };
  try {
    return {
      kind: 'kept',
      policy: await chooseRollbackTarget(host, active, { force: 'no', refused: 'skipped' }),
    };
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'a withdrawn release is active, and no kept release can replace it');
    return undefined;
  }
}

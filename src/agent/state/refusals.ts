// Records refused releases in rejected.json, and removes them. Only verdicts on authentic bytes are recorded, never a failure
// of the network or the host.
import { configDigest } from '../../core/config/config-digest.js';
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import type { NewRelease, ReleaseInfo } from '../../core/release/release.js';
import type { Host, RefusalsDocument } from './host.js';
import {
  matchesChoice,
  type RefusalChoice,
  type RefusalEntry,
  withImmediateRetry,
  withoutRefusal,
  withRefusal,
} from './refusal-rules.js';

/** Adds to each refused bundle in the results when its release is tried again. */
export function addRetryTimes(host: Host, results: Map<string, BundleResult>): void {
  const refused = [...results].filter(
    ([, { outcome }]) => outcome === 'rejected' || outcome === 'rolled-back',
  );
  if (refused.length === 0) return;
  const { refusals } = host.refusals.read();
  for (const [bundle, result] of refused) {
    const known = refusals.find((one) => one.bundle === bundle && one.serial === result.toSerial);
    if (known !== undefined) results.set(bundle, { ...result, retryAtMs: known.retryAtMs });
  }
}

/** Records refusals durably. Each record names the bundles that were refused together with it. @throws WritError DISK_* */
export function recordRefusals(
  host: Host,
  releases: readonly ReleaseInfo[],
  error: Pick<WritError, 'code' | 'message' | 'facts'>,
): void {
  const known = host.refusals.read();
  const names = releases.map((one) => one.bundle);
  const isHostFault = error.facts['hostFault'] !== undefined;
  const pace = { firstMs: host.config.refusals.retryMs, isHostFault };
  const refusals = releases.reduce(
    (all, release) => withRefusal(all, refusalOf(host, release, error, names), pace),
    known.refusals,
  );
  host.refusals.write({ ...known, config: configDigest(host.config), refusals });
}

/**
 * Records what workers refused, before the restore. All changed bundles that the refusing groups use are refused together,
 * because any of them may be the cause.
 * @param releases the new releases of the move
 * @param groups names of the refusing groups
 * @returns names of the refused bundles
 */
export function recordBlamedReleases(
  host: Host,
  releases: readonly ReleaseInfo[],
  error: WritError,
  groups: readonly string[],
): string[] {
  const refusing = host.groups.filter((one) => groups.includes(one.config.name));
  const used = new Set(refusing.flatMap((one) => one.config.uses));
  const blamed = releases.filter((one) => used.has(one.bundle));
  recordRefusals(host, blamed, error);
  return blamed.map((one) => one.bundle);
}

/**
 * Records releases that failed within their bake time.
 * @param retryMs milliseconds until the first retry of a release
 * @returns names of the refused bundles
 */
export function recordBakeFailures(
  host: Host,
  releases: readonly ReleaseInfo[],
  { error, retryMs }: { readonly error: WritError; readonly retryMs: (release: ReleaseInfo) => number },
): string[] {
  const known = host.refusals.read();
  const names = releases.map((one) => one.bundle);
  const refusals = releases.reduce((all, release) => {
    const pace = { firstMs: retryMs(release), isHostFault: false };
    return withRefusal(all, refusalOf(host, release, error, names), pace);
  }, known.refusals);
  host.refusals.write({ ...known, config: configDigest(host.config), refusals });
  return names;
}

/** Runs before a restore and logs any error, because a disk error must not keep workers on a release that they refused. */
export function recordIfPossible({ log }: Pick<Host, 'log'>, remember: () => void): void {
  try {
    remember();
  } catch (error) {
    log.error({ err: error }, 'a refusal could not be recorded: the release will be tried again');
  }
}

/** Resets the refusals to an earlier state, because the refusal since then was no verdict. */
export function undoRefusals({ refusals }: Pick<Host, 'refusals'>, before: RefusalsDocument): void {
  if (refusals.read() !== before) refusals.write(before);
}

const maxMessageCharacters = 2000;
export const maxOutputLines = 5;

function refusalOf(
  host: Host,
  release: ReleaseInfo,
  error: Pick<WritError, 'code' | 'message'>,
  names: readonly string[],
): Parameters<typeof withRefusal>[1] {
  return {
    bundle: release.bundle,
    channel: release.channel,
    serial: release.serial,
    manifestDigest: release.manifest.digest,
    code: error.code,
    message: error.message.slice(0, maxMessageCharacters),
    atMs: host.clock.nowMs(),
    refusedWith: names.filter((name) => name !== release.bundle),
  };
}

/**
 * Makes all refused releases due after a boot, and after a change of the configuration, which may have corrected the check
 * that refused them. A restart of the agent alone changes nothing.
 */
export function retryRefusalsAtStart(host: Host, { hasBooted }: { readonly hasBooted: boolean }): void {
  if (hasBooted || host.refusals.read().config !== configDigest(host.config)) retryRefusals(host);
}

/** Makes all refused releases due at once. */
export function retryRefusals(host: Host): void {
  const { refusals, ...known } = host.refusals.read();
  if (refusals.length === 0) return;
  host.refusals.write({
    ...known,
    config: configDigest(host.config),
    refusals: withImmediateRetry(refusals),
  });
}

/** Removes the refusals of releases that have become active. */
export function removeRefusalsOf(host: Host, active: readonly NewRelease[]): void {
  const known = host.refusals.read();
  const refusals = active.reduce(
    (all, { bundle, manifest }) => withoutRefusal(all, bundle, manifest.digest),
    known.refusals,
  );
  if (refusals.length < known.refusals.length) host.refusals.write({ ...known, refusals });
}

/** Removes the refusals that an operator selected, with their counts. @returns the removed refusals */
export function removeChosenRefusals(
  host: Pick<Host, 'refusals'>,
  choice: RefusalChoice,
): readonly RefusalEntry[] {
  const known = host.refusals.read();
  const chosen = known.refusals.filter((one) => matchesChoice(one, choice));
  const refusals = known.refusals.filter((one) => !chosen.includes(one));
  if (chosen.length > 0) host.refusals.write({ ...known, refusals });
  return chosen;
}

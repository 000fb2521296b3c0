// The memory of refused releases, kept in rejected.json. Only verdicts on authentic bytes are remembered: what
// the way here or this host did wrong never is.
import { configDigest } from '../../core/config/config-digest.js';
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import type { NewRelease, ReleaseInfo } from '../../core/release/release.js';
import type { Host, Refusals } from './host.js';
import { forget, isChosen, type Refusal, type RefusalChoice, remember, retryNow } from './refusal-rules.js';

/** Adds to the results when what was refused now is tried again. */
export function noteRetryTimes(host: Host, results: Map<string, BundleResult>): void {
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

/** Notes refusals durably; releases refused together are noted with each other's names. */
export function rememberReleases(
  host: Host,
  releases: readonly ReleaseInfo[],
  error: Pick<WritError, 'code' | 'message' | 'facts'>,
): void {
  const known = host.refusals.read();
  const names = releases.map((one) => one.bundle);
  const isHostFault = error.facts['hostFault'] !== undefined;
  const pace = { firstMs: host.config.refusals.retryMs, isHostFault };
  const refusals = releases.reduce(
    (all, release) => remember(all, refusalOf(host, release, error, names), pace),
    known.refusals,
  );
  host.refusals.write({ ...known, config: configDigest(host.config), refusals });
}

/**
 * Remembers what workers refused, before the link goes back. The changed bundles that the refusing groups use are
 * refused together: one of them is the culprit, and nobody knows which.
 * @param releases those that are new
 * @returns names of the bundles
 */
export function rememberBlamed(
  host: Host,
  releases: readonly ReleaseInfo[],
  error: WritError,
  groups: readonly string[],
): string[] {
  const refusing = host.groups.filter((one) => groups.includes(one.config.name));
  const used = new Set(refusing.flatMap((one) => one.config.uses));
  const blamed = releases.filter((one) => used.has(one.bundle));
  rememberReleases(host, blamed, error);
  return blamed.map((one) => one.bundle);
}

/** Before the link goes back: a disk that keeps no memory must not keep the workers on what they have refused. */
export function rememberIfPossible({ log }: Pick<Host, 'log'>, remember: () => void): void {
  try {
    remember();
  } catch (error) {
    log.error({ err: error }, 'a refusal could not be recorded: the release will be tried again');
  }
}

/** Puts back what was remembered before: the refusal that came since was no verdict. */
export function putBackRefusals({ refusals }: Pick<Host, 'refusals'>, before: Refusals): void {
  if (refusals.read() !== before) refusals.write(before);
}

const maxMessageCharacters = 2000;
export const maxOutputLines = 5;

function refusalOf(
  host: Host,
  release: ReleaseInfo,
  error: Pick<WritError, 'code' | 'message'>,
  names: readonly string[],
): Parameters<typeof remember>[1] {
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
 * At every start: what was refused is tried again at once after a boot, and under another configuration, which may
 * have repaired the check that refused. A restart of the agent alone asks nobody again.
 */
export function retryAtStart(host: Host, { booted }: { readonly booted: 'yes' | 'no' }): void {
  if (booted === 'yes' || host.refusals.read().config !== configDigest(host.config)) retryRefusals(host);
}

/** What was refused is tried again at once. */
export function retryRefusals(host: Host): void {
  const { refusals, ...known } = host.refusals.read();
  if (refusals.length === 0) return;
  host.refusals.write({ ...known, config: configDigest(host.config), refusals: retryNow(refusals) });
}

/** A release that has become active is refused no more, whatever it was before. */
export function forgetReleases(host: Host, active: readonly NewRelease[]): void {
  const known = host.refusals.read();
  const refusals = active.reduce(
    (all, { bundle, manifest }) => forget(all, bundle, manifest.digest),
    known.refusals,
  );
  if (refusals.length < known.refusals.length) host.refusals.write({ ...known, refusals });
}

/** At a person's word: what was chosen is tried as if it had never been refused. @returns what was forgotten */
export function forgetChosen(host: Pick<Host, 'refusals'>, choice: RefusalChoice): readonly Refusal[] {
  const known = host.refusals.read();
  const chosen = known.refusals.filter((one) => isChosen(one, choice));
  const refusals = known.refusals.filter((one) => !chosen.includes(one));
  if (chosen.length > 0) host.refusals.write({ ...known, refusals });
  return chosen;
}

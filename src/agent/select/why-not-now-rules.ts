// Judges whether an offered release is taken now: every restriction of this host in one place; the first in force is the reason.
// `--force` ignores them all. Pure; the purpose of a restriction is documented where it is set.
import { type ErrorCode, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { describeCaller } from '../../core/names.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import type { Ledger, WaitingRelease } from '../state/ledger.js';
import { findRefusal, type RefusalEntry } from '../state/refusal-rules.js';

export interface Restrictions extends Pick<Ledger, 'holds' | 'blocked' | 'pause' | 'waiting'> {
  readonly refusals: readonly RefusalEntry[];
}

export interface NotNow {
  readonly error: WritError;
  /** Of a remembered refusal: when it is tried again, epoch milliseconds. */
  readonly retryAtMs?: number;
}

/**
 * Selects the restrictions of a release that replaces a withdrawn one: a pause, a block, and a hold of a person on this release.
 * Other holds and waits would keep a host on the withdrawn release.
 * @param canLeave true where a retained release can replace the withdrawn one: a remembered refusal counts only then
 */
export function forWithdrawal(
  { manifest }: ReleaseInfo,
  restrictions: Restrictions,
  { canLeave }: { readonly canLeave: boolean },
): Restrictions {
  const { holds, blocked, pause } = restrictions;
  const own = holds.filter(({ manifestDigest }) => manifestDigest === manifest.digest);
  const refusals = canLeave ? restrictions.refusals : [];
  return { holds: own, refusals, ...given({ blocked, pause }) };
}

/** @returns the reason for which the release is not taken now; undefined where it is */
export function whyNotNow(
  release: ReleaseInfo,
  restrictions: Restrictions,
  nowMs: number,
): NotNow | undefined {
  const isRemembered = refusedBefore(release, restrictions, nowMs);
  if (isRemembered !== undefined) return isRemembered;
  const what = `${release.bundle} ${release.serial}`;
  const error = pausedError(restrictions, nowMs, what) ?? stillWaiting(release, restrictions, nowMs);
  return error && { error };
}

/** @returns the error of a hold, a block, or a remembered refusal; undefined without one */
function refusedBefore(
  { bundle, serial, manifest }: ReleaseInfo,
  { holds, blocked, refusals }: Restrictions,
  nowMs: number,
): NotNow | undefined {
  const hold = holds.find((one) => one.bundle === bundle && one.serial >= serial);
  if (hold !== undefined) {
    const text = `${bundle} ${serial} is held after a rollback by ${describeCaller(hold.by)}: ${hold.reason}`;
    const facts = { bundle, serial, by: hold.by, since: hold.atMs };
    return { error: new WritError('RELEASE_HELD', text, { facts }) };
  }
  // Ledgers of older versions name the digests alone.
  const isBlocked = blocked?.releases
    ? blocked.releases[bundle] === manifest.digest
    : blocked?.manifestDigests.includes(manifest.digest);
  if (blocked !== undefined && isBlocked === true) {
    const facts = { bundle, serial, since: blocked.atMs };
    return { error: new WritError('ACTIVATION_BLOCKED', blocked.reason, { facts }) };
  }
  const refusal = findRefusal(refusals, bundle, manifest.digest);
  // A time in the future is of a clock that was set back since.
  if (refusal === undefined || refusal.retryAtMs <= nowMs || refusal.atMs > nowMs) return undefined;
  const error = new WritError('REMEMBERED_REFUSAL', `${bundle} ${serial} was refused: ${refusal.message}`, {
    facts: { bundle, serial, refusedFor: refusal.code, refusedAt: refusal.atMs },
  });
  return { error, retryAtMs: refusal.retryAtMs };
}

/** @returns the pause in force; undefined without one, and after its end, also where that was not written yet */
export function pauseNow({ pause }: Pick<Ledger, 'pause'>, nowMs: number): Ledger['pause'] {
  return pause?.untilMs !== undefined && pause.untilMs <= nowMs ? undefined : pause;
}

/**
 * Creates the error for a release that waits because activation is paused. Returns it; throws nothing.
 * @param what name of the release that waits, as `dns-edge 42`
 * @returns ACTIVATION_PAUSED, with the facts `by`, `reason`, `since` and, for a pause with an end, `untilMs` (epoch
 *   milliseconds). Undefined without a pause, and from its end on: a pause with `untilMs` equal to `nowMs` is over. Example of
 *   the message: `dns-edge 42 waits: paused by user ops until writ resume: audit`
 */
export function pausedError(
  ledger: Pick<Ledger, 'pause'>,
  nowMs: number,
  what: string,
): WritError | undefined {
  const pause = pauseNow(ledger, nowMs);
  if (pause === undefined) return undefined;
  const { by, reason, atMs: since, untilMs } = pause;
  const end = untilMs === undefined ? 'until writ resume' : `until ${utcTimeText(untilMs)}`;
  return new WritError(
    'ACTIVATION_PAUSED',
    `${what} waits: paused by ${describeCaller(by)} ${end}: ${reason}`,
    {
      facts: { by, reason, since, ...(untilMs === undefined ? {} : { untilMs }) },
    },
  );
}

/** @returns the error of a release that was judged or tried before, and waits until a time; undefined without one */
function stillWaiting(
  { bundle, manifest }: ReleaseInfo,
  { waiting = {} }: Restrictions,
  nowMs: number,
): WritError | undefined {
  const wait = waiting[bundle];
  if (wait?.manifestDigest !== manifest.digest) return undefined;
  const { vain, untilMs, changedAtMs } = wait;
  if (vain?.isHeld === true) return failedAttemptError(bundle, wait, { vain, untilMs });
  if (untilMs === undefined || untilMs <= nowMs || changedAtMs > nowMs) return undefined;
  return vain === undefined
    ? pacedError(bundle, wait, untilMs)
    : failedAttemptError(bundle, wait, { vain, untilMs });
}

/** @returns ACTIVATION_PACED, for a release that waits for the pace of groups until a time */
export function pacedError(
  bundle: string,
  { serial, groups }: Pick<WaitingRelease, 'serial' | 'groups'>,
  untilMs: number,
): WritError {
  const text = `${bundle} ${serial} waits until ${utcTimeText(untilMs)}: ${groups.join(', ')} is not notified before that`;
  return new WritError('ACTIVATION_PACED', text, { facts: { bundle, serial, groups, untilMs } });
}

export interface FailedAttempt {
  readonly vain: NonNullable<WaitingRelease['vain']>;
  /** Undefined where no time delays the next attempt: the release is held, or only a pause or a block delays it. */
  readonly untilMs: number | undefined;
}

/** @returns the error for a release that was tried and got no verdict */
export function failedAttemptError(
  bundle: string,
  { serial, groups }: Pick<WaitingRelease, 'serial' | 'groups'>,
  { vain: { isHeld, tries, code }, untilMs }: FailedAttempt,
): WritError {
  const [what, names] = [`${bundle} ${serial}`, groups.join(', ')];
  if (isHeld === true) {
    const text = `${what} was rolled back ${tries} times: ${names} ${heldReason(code)}`;
    return new WritError(code, text, { facts: { bundle, serial, groups, tries } });
  }
  const when = untilMs === undefined ? 'may be tried again' : `waits until ${utcTimeText(untilMs)}`;
  const text = `${what} ${when}: ${names}: ${reasons[code] ?? 'a command gave no verdict'}`;
  return new WritError(code, text, { facts: { bundle, serial, groups, ...given({ untilMs }) } });
}

function heldReason(code: ErrorCode): string {
  return code === 'REFUSAL_REPEATED' ? 'refused it and the release before it alike' : 'did not react to it';
}

const reasons: Readonly<Partial<Record<ErrorCode, string>>> = {
  LOADER_DEFERRED: 'the loader said "not now"',
  SILENT_REFUSAL: 'the daemon did not react',
  REFUSAL_REPEATED: 'the release before it was refused alike',
};

// What time a signer signs by. Versions are monotone, clocks are not: hosts take the greatest `signedAt` of a timestamp for
// the least that the time can be, so whoever signs by an earlier time signs what is refused at birth. A clock that is
// ahead does the harm, so that one which may be is asked about; nobody but a person overrides the answer.
import { WritError } from '../../core/errors.js';
import { isVouchedByRoot } from '../../core/tuf/metadata-checks.js';
import { signedAtMsOf } from '../../core/tuf/trusted-set.js';
import type { ParsedFile, TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Edition } from '../repository/metadata-content.js';
import type { RepositoryState } from '../repository/repository-state.js';

/** How a clock that may be wrong is asked about; without one it is believed. */
export interface ClockCheck {
  /** Asks the kernel; `unknown` where no program of this machine says it, as in most containers. */
  readonly ask: () => Promise<'synchronised' | 'unsynchronised' | 'unknown'>;
  /** A person has said `--clock-is-right`. */
  readonly stated?: boolean | undefined;
}

/** The clock of a signer, with what was said about it. */
export interface SigningClock extends Clock {
  /** A person vouches for it, and what it signs says so. */
  readonly stated?: true;
}

/** Repositories with a server are signed every few days; a clock may be years ahead. */
const maxSilenceMs = 30 * 86_400_000;
/** As much as hosts let a clock differ before they say so. */
const toleratedMs = 60_000;

type Signed = Pick<RepositoryState, 'live'>;

/**
 * @param root that hosts will go by; the live one by default. With the key of the timestamp they forget what it said
 * @returns the time that the next files are signed by: now, or when a clock that was ahead has signed before
 */
export function signingTimeMs({ live }: Signed, nowMs: number, root: ParsedFile<'root'> = live.root): number {
  if (!isVouchedByRoot(live.timestamp, root)) return nowMs;
  return Math.max(nowMs, signedAtMsOf(live.timestamp) ?? 0);
}

/** @returns how far the repository was signed ahead of this clock; undefined for what nobody has to know */
export function signedAheadMs(state: Signed, nowMs: number): number | undefined {
  const aheadMs = signingTimeMs(state, nowMs) - nowMs;
  return aheadMs > toleratedMs ? aheadMs : undefined;
}

/** Where a role ends before the time that hosts were told. */
export const signedAheadHint =
  'A clock that was ahead has signed. Re-sign the role (`writ sign --role`), or replace the timestamp key (docs/operations.md, "Signed ahead").';

/** @returns for an edition: the time, and whether a person vouches for it */
export function signedBy(
  state: Signed,
  clock: SigningClock,
  root?: ParsedFile<'root'>,
): Pick<Edition, 'nowMs' | 'stated'> {
  const nowMs = signingTimeMs(state, clock.nowMs(), root);
  return clock.stated === undefined ? { nowMs } : { nowMs, stated: true };
}

/**
 * @returns the clock to sign by
 * @throws WritError CLOCK_UNSURE when it is far past all that was signed, and the kernel says that nobody sets it
 */
export async function sureClock(
  { clock, clockCheck }: { readonly clock: Clock; readonly clockCheck?: ClockCheck | undefined },
  state: RepositoryState,
): Promise<SigningClock> {
  const lastMs = lastSignedAtMs(state, clock.nowMs());
  const silenceMs = clock.nowMs() - (lastMs ?? Number.POSITIVE_INFINITY);
  if (clockCheck === undefined || silenceMs <= maxSilenceMs) return clock;
  if (clockCheck.stated === true) return { ...clock, stated: true };
  if ((await clockCheck.ask()) !== 'unsynchronised') return clock;
  const now = new Date(clock.nowMs()).toISOString();
  const lastSignedAt = new Date(lastMs ?? 0).toISOString();
  throw new WritError(
    'CLOCK_UNSURE',
    `this clock says ${now}, but the last signature is of ${lastSignedAt}`,
    {
      facts: { now, lastSignedAt, silenceMs },
    },
  );
}

/** A team answers for no clock: a time to come that its thief has signed would end the question for ever. */
function lastSignedAtMs({ live, targets, delegated }: RepositoryState, nowMs: number): number | undefined {
  const files: ParsedFile<TopLevelRole>[] = [live.root, live.timestamp, live.snapshot, targets];
  const teams = [...delegated.values()].filter((file) => (signedAtMsOf(file) ?? 0) <= nowMs);
  const times = [...files, ...teams].flatMap((file) => signedAtMsOf(file) ?? []);
  return times.length === 0 ? undefined : Math.max(...times);
}

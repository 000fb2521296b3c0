// Decides the time of a signature. Hosts use the greatest `signedAt` of a timestamp as the lower bound of the time, so that
// they refuse metadata with an earlier time. A clock that is ahead therefore causes lasting harm: where it may be ahead,
// the kernel is asked whether it is synchronised, and only an operator overrides the answer.
import { WritError } from '../../core/errors.js';
import { isVouchedByRoot } from '../../core/tuf/metadata-checks.js';
import { signedAtMsOf } from '../../core/tuf/trusted-set.js';
import type { ParsedFile, TopLevelRole } from '../../core/tuf/tuf-metadata.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Edition } from '../repository/metadata-content.js';
import type { RepositoryState } from '../repository/repository-state.js';

/** The check of a clock that may be wrong; where it is undefined, the clock is trusted. */
export interface ClockCheck {
  /** Asks the kernel; `unknown` where no program of this machine reports it, as in most containers. */
  readonly ask: () => Promise<'synchronised' | 'unsynchronised' | 'unknown'>;
  /** An operator gave the flag `--clock-is-right`. */
  readonly stated?: boolean | undefined;
}

/** The clock of a signer, and whether an operator confirmed it. */
export interface SigningClock extends Clock {
  /** An operator confirmed the clock, and the signed metadata records it. */
  readonly stated?: true;
}

/** A repository with a server is signed every few days; a later clock may be wrong, by years. */
const maxSilenceMs = 30 * 86_400_000;
/** The difference of clocks that hosts accept without a warning. */
const toleratedMs = 60_000;

type Signed = Pick<RepositoryState, 'live'>;

/**
 * @param root the root that hosts will use; the published one by default. Hosts delete the timestamp when a root replaces its key
 * @returns the time of the next signatures: `nowMs`, or the time of the published timestamp where it is later
 */
export function chooseSigningTimeMs(
  { live }: Signed,
  nowMs: number,
  root: ParsedFile<'root'> = live.root,
): number {
  if (!isVouchedByRoot(live.timestamp, root)) return nowMs;
  return Math.max(nowMs, signedAtMsOf(live.timestamp) ?? 0);
}

/** @returns milliseconds from this clock to the signing time; undefined up to the tolerated difference */
export function measureSignedAheadMs(state: Signed, nowMs: number): number | undefined {
  const aheadMs = chooseSigningTimeMs(state, nowMs) - nowMs;
  return aheadMs > toleratedMs ? aheadMs : undefined;
}

/** The hint where a role expires before the signing time of the published timestamp. */
export const signedAheadHint =
  'A clock that was ahead has signed. Re-sign the role (`writ sign --role`), or replace the timestamp key (docs/operations.md, "Signed ahead").';

/** @returns the members of an edition that record the time, and that an operator confirmed the clock */
export function describeSigningTime(
  state: Signed,
  clock: SigningClock,
  root?: ParsedFile<'root'>,
): Pick<Edition, 'nowMs' | 'stated'> {
  const nowMs = chooseSigningTimeMs(state, clock.nowMs(), root);
  return clock.stated === undefined ? { nowMs } : { nowMs, stated: true };
}

/**
 * @returns the clock for the signatures
 * @throws WritError CLOCK_UNSURE when it is far past every signature, and the kernel reports that it is not synchronised
 */
export async function requireReliableClock(
  { clock, clockCheck }: { readonly clock: Clock; readonly clockCheck?: ClockCheck | undefined },
  state: RepositoryState,
): Promise<SigningClock> {
  const lastMs = findLastSignedAtMs(state, clock.nowMs());
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

/** Ignores future times of teams: with one of them a stolen team key would disable the check for ever. */
function findLastSignedAtMs(
  { live, targets, delegated }: RepositoryState,
  nowMs: number,
): number | undefined {
  const files: ParsedFile<TopLevelRole>[] = [live.root, live.timestamp, live.snapshot, targets];
  const teams = [...delegated.values()].filter((file) => (signedAtMsOf(file) ?? 0) <= nowMs);
  const times = [...files, ...teams].flatMap((file) => signedAtMsOf(file) ?? []);
  return times.length === 0 ? undefined : Math.max(...times);
}

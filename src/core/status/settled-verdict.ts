// Whether the releases that were active when a wait began have settled, read from one status report. Pure.
import { given } from '../given.js';
import type { BakeStatus, BakeWait, StatusReport } from './status.js';

/** A release that a wait is about. */
export interface WatchedRelease {
  readonly bundle: string;
  readonly serial: number;
}

/**
 * `none`: it has no bake time. `taken-back`: an older release, or none, is active in its place. `failed`: it failed, and is
 * active still.
 */
export type ReleaseFate = 'baking' | 'settled' | 'unobserved' | 'none' | 'taken-back' | 'failed';

export interface JudgedRelease extends WatchedRelease {
  readonly state: ReleaseFate;
  /** Of a bake that goes on. */
  readonly leftMs?: number;
  /** There while the bake time does not pass, or is over and the release has not settled. */
  readonly waitsFor?: BakeWait;
  /**
   * Error code and text of a failure. Of a release that is not active any more, as far as it is known: its refusal, CONTACT_LOST,
   * RELEASE_HELD after a rollback by a person, RELEASE_WITHDRAWN.
   */
  readonly cause?: string;
  readonly text?: string;
}

export function watchedReleases({ bundles }: Pick<StatusReport, 'bundles'>): WatchedRelease[] {
  return bundles.flatMap(({ bundle, serial }) => (serial === undefined ? [] : [{ bundle, serial }]));
}

/**
 * A newer release that became active meanwhile takes the place of the one that was watched: the question is whether what the
 * host has now is good.
 */
export function judgeReleases(
  watched: readonly WatchedRelease[],
  { bundles, ...reasons }: Pick<StatusReport, 'bundles'> & LeaveReasons,
): JudgedRelease[] {
  return watched.map(({ bundle, serial }): JudgedRelease => {
    const now = bundles.find((one) => one.bundle === bundle);
    if (now?.serial === undefined || now.serial < serial) {
      const cause = causeOf({ bundle, serial }, { ...reasons, offered: now?.server?.serial });
      return { bundle, serial, state: 'taken-back', ...cause };
    }
    return { bundle, serial: now.serial, ...fateOf(now.bake) };
  });
}

type LeaveReasons = Pick<StatusReport, 'refusals' | 'problems' | 'holds'>;

/** A release that lost contact is held, and not remembered as refused. */
function causeOf(
  { bundle, serial }: WatchedRelease,
  { refusals, problems, holds, offered = serial }: LeaveReasons & { readonly offered: number | undefined },
): Pick<JudgedRelease, 'cause' | 'text'> {
  const refusal = refusals.find((one) => one.bundle === bundle && one.serial === serial);
  if (refusal !== undefined) return { cause: refusal.code, text: refusal.reason };
  const lost = problems.find(
    ({ code, facts }) => code === 'CONTACT_LOST' && facts['bundle'] === bundle && facts['serial'] === serial,
  );
  if (lost !== undefined) return { cause: lost.code, text: lost.message };
  const hold = holds.find((one) => one.bundle === bundle && one.serial === serial && one.by !== 'writ');
  if (hold !== undefined) {
    const reason = hold.reason === undefined || hold.reason === '' ? '' : `: ${hold.reason}`;
    return { cause: 'RELEASE_HELD', text: `was rolled back by user ${hold.by}${reason}` };
  }
  // Only a withdrawal makes a channel offer an older release.
  return offered < serial
    ? { cause: 'RELEASE_WITHDRAWN', text: `was withdrawn by its publisher, which offers ${offered} again` }
    : {};
}

function fateOf(bake: BakeStatus | undefined): Omit<JudgedRelease, 'bundle' | 'serial'> {
  if (bake === undefined) return { state: 'none' };
  const { state, leftMs = 0, waitsFor, observed, cause, text } = bake;
  switch (state) {
    case 'baking':
      return { state, leftMs, ...given({ waitsFor }) };
    case 'failed':
      return { state, ...(cause && { cause }), ...(text && { text }) };
    case 'settled':
      return { state: observed === false ? 'unobserved' : 'settled' };
  }
}

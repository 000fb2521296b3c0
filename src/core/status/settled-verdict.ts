// Decides from one status report whether the releases that were active when a wait began have settled.
import { given } from '../given.js';
import type { BakeStatus, BakeWait, StatusReport } from './status.js';

/** A release that a wait covers. */
export interface AwaitedRelease {
  readonly bundle: string;
  readonly serial: number;
}

/**
 * `none`: it has no bake time. `taken-back`: an older release, or none, is active in its place. `failed`: it failed within its
 * bake time and is still active. `unobserved`: it settled, but no agent observed its bake time.
 */
export type SettleState = 'baking' | 'settled' | 'unobserved' | 'none' | 'taken-back' | 'failed';

export interface SettleVerdict extends AwaitedRelease {
  readonly state: SettleState;
  /** Milliseconds until the bake time ends; only while it bakes. */
  readonly leftMs?: number;
  /** Present while the bake time does not pass, or after it ended and the release has not settled. */
  readonly waitsFor?: BakeWait;
  /**
   * Error code and text of a failure. For a release that is not active any more, if the cause is known: its refusal,
   * CONTACT_LOST, RELEASE_HELD after a rollback by an operator, or RELEASE_WITHDRAWN.
   */
  readonly cause?: string;
  readonly text?: string;
}

/** @returns the active release of each bundle; a bundle without one is left out */
export function listAwaitedReleases({ bundles }: Pick<StatusReport, 'bundles'>): AwaitedRelease[] {
  return bundles.flatMap(({ bundle, serial }) => (serial === undefined ? [] : [{ bundle, serial }]));
}

/**
 * Judges each awaited release. A newer release that became active in the meantime is judged instead, because the caller waits
 * until the releases in use are proved good.
 * @returns one verdict for each awaited release, in their order
 */
export function judgeAwaitedReleases(
  awaited: readonly AwaitedRelease[],
  { bundles, ...reasons }: Pick<StatusReport, 'bundles'> & DeactivationEvidence,
): SettleVerdict[] {
  return awaited.map(({ bundle, serial }): SettleVerdict => {
    const now = bundles.find((one) => one.bundle === bundle);
    if (now?.serial === undefined || now.serial < serial) {
      const cause = findCause({ bundle, serial }, { ...reasons, offered: now?.server?.serial });
      return { bundle, serial, state: 'taken-back', ...cause };
    }
    return { bundle, serial: now.serial, ...judgeBake(now.bake) };
  });
}

type DeactivationEvidence = Pick<StatusReport, 'refusals' | 'problems' | 'holds'>;

/** Compares lost contact before the holds, because a release that lost contact is held and not refused. */
function findCause(
  { bundle, serial }: AwaitedRelease,
  {
    refusals,
    problems,
    holds,
    offered = serial,
  }: DeactivationEvidence & { readonly offered: number | undefined },
): Pick<SettleVerdict, 'cause' | 'text'> {
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
  // A channel offers an older release only after a withdrawal.
  return offered < serial
    ? { cause: 'RELEASE_WITHDRAWN', text: `was withdrawn by its publisher, which offers ${offered} again` }
    : {};
}

function judgeBake(bake: BakeStatus | undefined): Omit<SettleVerdict, 'bundle' | 'serial'> {
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

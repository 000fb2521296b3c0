// Decides by a report's counter whether it is new, a repeat after a lost response, or needs a challenge. Pure. Only the counter
// protects from replays; clocks never decide.
import { longestGrantMs } from '../../core/fleet/report.js';

export interface LastReport {
  readonly counter: number;
  readonly bodyDigest: string;
  /** Nonce of the open challenge; '' if there is none. */
  readonly nonce: string;
}

export interface NextReport {
  readonly counter: number;
  readonly bodyDigest: string;
  readonly nonce?: string | undefined;
}

/**
 *   nonce           counter    digest     verdict
 *   expected        higher     any        `answered`: a machine restored from a snapshot; accepted once
 *   unexpected      any        any        `challenge`
 *   none            higher     any        `newer`
 *   none            same       same       `repeat`: the response is 200 again, and nothing changes
 *   none            same       other      `challenge`
 *   none            lower      any        `challenge`
 */
export function judgeCounter(
  last: LastReport,
  next: NextReport,
): 'newer' | 'answered' | 'repeat' | 'challenge' {
  const isHigher = next.counter > last.counter;
  if (next.nonce !== undefined)
    return isHigher && last.nonce !== '' && next.nonce === last.nonce ? 'answered' : 'challenge';
  if (isHigher) return 'newer';
  return next.counter === last.counter && next.bodyDigest === last.bodyDigest ? 'repeat' : 'challenge';
}

/**
 * @param factor multiplies the interval; above 1 if the server gets more reports than it can process
 * @returns milliseconds: at least askedMs; at most ten times askedMs and at most an hour, unless askedMs is longer
 */
export function grantedInterval(askedMs: number, factor: number): number {
  return Math.round(Math.min(Math.max(askedMs * factor, askedMs), longestGrantMs(askedMs)));
}

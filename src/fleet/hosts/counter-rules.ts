// What a report's counter says: new, a repeat of an answer that was lost, or to be challenged. Pure. The counter alone
// decides about replays; clocks do not.
import { longestGrantMs } from '../../core/fleet/report.js';

export interface LastReport {
  readonly counter: number;
  readonly bodyDigest: string;
  /** Of the challenge that was not answered yet; '' for none. */
  readonly nonce: string;
}

export interface NextReport {
  readonly counter: number;
  readonly bodyDigest: string;
  readonly nonce?: string | undefined;
}

/**
 *   nonce           counter    digest     verdict
 *   the one asked   higher     any        `answered`: a machine that was restored from a snapshot, taken once
 *   another         any        any        `challenge`
 *   none            higher     any        `newer`
 *   none            same       same       `repeat`: 200 again, and nothing is done
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

/** @param factor of what was asked: above 1 where there are more reports than the server can take */
export function grantedInterval(askedMs: number, factor: number): number {
  return Math.round(Math.min(Math.max(askedMs * factor, askedMs), longestGrantMs(askedMs)));
}

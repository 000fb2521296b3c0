// How fresh what a host trusts is, after each cycle: reached, not reached, or reached and frozen. Pure.
import type { StatusReport } from '../core/control-protocol.js';
import type { CycleResult } from '../core/cycle-report.js';

/** Codes that say that the server was not reached, or answered with nothing of use. */
const unreachedCodes: ReadonlySet<string> = new Set([
  'SERVER_UNREACHABLE',
  'SERVER_ERROR',
  'SERVER_BUSY',
  'REDIRECT_REFUSED',
  'DOWNLOAD_TIMEOUT',
]);

/** @returns the freshness after a cycle that ended so */
export function freshnessAfter(
  before: StatusReport['freshness'],
  result: CycleResult,
  nowMs: number,
): StatusReport['freshness'] {
  const codes = result.problems.map((one) => one.code);
  // Ended by us, before or after the server was reached: nothing new is known about it.
  if (codes.includes('INTERRUPTED')) return before;
  if (isUnreached(result)) return { ...before, state: 'stale' };
  if (codes.includes('METADATA_EXPIRED')) return { state: 'frozen', lastContactMs: nowMs };
  return { state: 'fresh', lastContactMs: nowMs };
}

/** True when the server was not reached, or not to the end: the next poll comes later. */
export function isUnreached(result: CycleResult): boolean {
  return result.problems.some((one) => unreachedCodes.has(one.code));
}

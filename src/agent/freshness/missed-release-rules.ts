// Decides by the result of a cycle whether a bundle misses the offered release. A decision of an operator or publisher, a refusal and a
// wait are other states, and end it. Pure.
import type { BundleResult, Problem } from '../../core/cycle/cycle-report.js';
import { isNowActive } from '../../core/cycle/sync-machine.js';
import { errorCodes } from '../../core/error-codes.js';
import { withoutUndefined } from '../../core/given.js';
import type { MissedRelease } from '../../core/status/missed-release.js';

const maxUrlLength = 500;

export interface CycleFacts {
  /** Epoch milliseconds: when the metadata that offers the release was verified. */
  readonly atMs: number;
  /** The error that ended the complete cycle. */
  readonly error?: Problem | undefined;
}

/**
 * @param before the release that this bundle missed before the cycle
 * @returns the missed release after it; undefined where the host has the newest release, or should not have it now
 */
export function missedAfter(
  before: MissedRelease | undefined,
  result: BundleResult,
  { atMs, error }: CycleFacts,
): MissedRelease | undefined {
  const { toSerial, fromSerial, problem = error } = result;
  if (isNowActive(result) || problem === undefined) return undefined;
  if (toSerial !== undefined && toSerial === fromSerial) return undefined;
  // This process ended the cycle, which shows nothing about the release.
  if (problem.code === 'INTERRUPTED') return before;
  // A bundle that is not listed is not offered.
  if (errorCodes[problem.code].kind !== 'failed' || problem.code === 'TARGET_UNKNOWN') return undefined;
  const { url } = problem.facts;
  return withoutUndefined<MissedRelease>({
    serial: toSerial,
    // A time in the future was recorded before the clock was set back.
    sinceMs: Math.min(before?.sinceMs ?? atMs, atMs),
    code: problem.code,
    url: typeof url === 'string' ? url.slice(0, maxUrlLength) : undefined,
  });
}

// Whether a bundle misses the release that is offered, by its result at the end of a cycle. What a person or the publisher
// wanted, a refusal and a wait are other states with names of their own, and end it. Pure.
import type { BundleResult, Problem } from '../../core/cycle/cycle-report.js';
import { isNowActive } from '../../core/cycle/sync-machine.js';
import { errorCodes } from '../../core/error-codes.js';
import { withoutUndefined } from '../../core/given.js';
import type { MissedRelease } from '../../core/status/missed-release.js';

const maxUrlLength = 500;

export interface CycleFacts {
  /** When the metadata was verified that offers the release. Epoch milliseconds. */
  readonly atMs: number;
  /** What ended the cycle as a whole. */
  readonly error?: Problem | undefined;
}

/** @returns undefined where the host has the newest release, or is not to have it now */
export function missedAfter(
  before: MissedRelease | undefined,
  result: BundleResult,
  { atMs, error }: CycleFacts,
): MissedRelease | undefined {
  const { toSerial, fromSerial, problem = error } = result;
  if (isNowActive(result) || problem === undefined) return undefined;
  if (toSerial !== undefined && toSerial === fromSerial) return undefined;
  // This process ended the cycle: nothing new is known.
  if (problem.code === 'INTERRUPTED') return before;
  // A bundle that is not listed is not offered.
  if (errorCodes[problem.code].kind !== 'failed' || problem.code === 'TARGET_UNKNOWN') return undefined;
  const { url } = problem.facts;
  return withoutUndefined<MissedRelease>({
    serial: toSerial,
    // A time of the future was noted by a clock that was set back since.
    sinceMs: Math.min(before?.sinceMs ?? atMs, atMs),
    code: problem.code,
    url: typeof url === 'string' ? url.slice(0, maxUrlLength) : undefined,
  });
}

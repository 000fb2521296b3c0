// Decides which ends of cycles are reported as outcomes. Bounds, merges and numbers the outcomes that no server has stored
// yet. Pure functions.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { fleetBounds, type OutcomeReport } from '../../core/fleet/report.js';
import { given } from '../../core/given.js';
import type { OutcomesFile } from './fleet-files.js';

/** Bounds the size of an outcome, so that a hundred of them stay below a megabyte. */
const maxBundles = 16;

/** @returns the outcome of a cycle that changed or refused a release; undefined for any other one */
export function outcomeOfEnd(result: CycleResult): Omit<OutcomeReport, 'n'> | undefined {
  // A remembered refusal was reported when it was new. An unreachable server is no outcome of this host.
  const touched = result.bundles.filter((one) => one.outcome !== 'unchanged' && one.remembered !== true);
  const hasOutcome = touched.some(isOutcome);
  if (!result.changed && !hasOutcome) return undefined;
  const code =
    result.problems[0]?.code ?? touched.find(({ problem }) => problem !== undefined)?.problem?.code;
  return {
    trigger: result.trigger,
    outcome: result.outcome,
    ...given({ code }),
    atMs: result.startedAtMs + Math.max(0, Math.round(result.durationMs)),
    bundles: touched.slice(0, maxBundles).flatMap(({ bundle, channel, toSerial, fromSerial }) => {
      const serial = toSerial ?? fromSerial;
      return serial === undefined ? [] : [{ bundle, channel, serial }];
    }),
  };
}

/** @returns false for a release that only waits at this poll: its restore was reported when it occurred */
function isOutcome({ outcome, problem }: CycleResult['bundles'][number]): boolean {
  const waits = outcome === 'deferred' || outcome === 'failed';
  return !waits && !(outcome === 'degraded' && problem !== undefined);
}

/** Adds an outcome. A repetition replaces the last one under a new number, because a server may have stored the last one. */
export function withOutcome(file: OutcomesFile, outcome: Omit<OutcomeReport, 'n'>): OutcomesFile {
  const { pending, dropped } = file;
  const next: OutcomeReport = { n: file.last + 1, ...outcome };
  const repeats = sameApartFromTime(pending.at(-1), next);
  const all = [...(repeats ? pending.slice(0, -1) : pending), next];
  const tooMany = Math.max(0, all.length - fleetBounds.maxOutcomes);
  return { ...file, last: next.n, dropped: dropped + tooMany, pending: all.slice(tooMany) };
}

function sameApartFromTime(a: OutcomeReport | undefined, b: OutcomeReport): boolean {
  return JSON.stringify({ ...a, n: 0, atMs: 0 }) === JSON.stringify({ ...b, n: 0, atMs: 0 });
}

/**
 * Removes the outcomes that a server has stored. A number above all of this host comes from a state that this host has lost
 * (a restored snapshot, a damaged file). The server took the pending outcomes for old ones then, so they get higher numbers.
 * @param stored number of the newest stored outcome
 */
export function withoutStored(file: OutcomesFile, stored: number): OutcomesFile {
  if (stored <= file.last) {
    const pending = file.pending.filter(({ n }) => n > stored);
    return pending.length === file.pending.length ? file : { ...file, dropped: 0, pending };
  }
  const pending = file.pending.map((one, index) => ({ ...one, n: stored + 1 + index }));
  return { ...file, last: stored + pending.length, pending };
}

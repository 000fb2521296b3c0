// Which ends of cycles a fleet hears of, and how those that no server has stored are kept: few, merged, numbered. Pure.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { fleetBounds, type OutcomeReport } from '../../core/fleet/report.js';
import { given } from '../../core/given.js';
import type { OutcomesFile } from './fleet-files.js';

/** So that a hundred outcomes are no megabyte. */
const maxBundles = 16;

/** @returns what is kept of an end that changed or refused something; undefined for any other one */
export function outcomeOfEnd(result: CycleResult): Omit<OutcomeReport, 'n'> | undefined {
  // A refusal that is only remembered was heard of when it was new; a server that was away is no outcome of this host.
  const touched = result.bundles.filter((one) => one.outcome !== 'unchanged' && one.remembered !== true);
  const isNews = touched.some(isNewsOf);
  if (!result.changed && !isNews) return undefined;
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

/** A release that only waits at this poll is none: its way back was reported when it came. */
function isNewsOf({ outcome, problem }: CycleResult['bundles'][number]): boolean {
  const waits = outcome === 'deferred' || outcome === 'failed';
  return !waits && !(outcome === 'degraded' && problem !== undefined);
}

/** One that repeats the last one takes its place, under a number of its own: that one may have been stored. */
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
 * What is left when a server has stored outcomes up to a number. One that is above all of ours is from a time that this host has
 * lost (a snapshot, a damaged file): what is pending was taken for old, and is numbered again behind it.
 */
export function withoutStored(file: OutcomesFile, stored: number): OutcomesFile {
  if (stored <= file.last) {
    const pending = file.pending.filter(({ n }) => n > stored);
    return pending.length === file.pending.length ? file : { ...file, dropped: 0, pending };
  }
  const pending = file.pending.map((one, index) => ({ ...one, n: stored + 1 + index }));
  return { ...file, last: stored + pending.length, pending };
}

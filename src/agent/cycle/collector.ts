// When a host collects apart from its commits: at a start, when a grace has run out, and again some time after a
// removal that failed or was kept off by a holder; what jobs had to leave in staging goes with it. Never throws: a
// collection that fails is a warning.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError } from '../../core/errors.js';
import type { GenerationUserStatus } from '../../core/status/status.js';
import { findHolders } from '../../platform/process/find-processes.js';
import { collectGarbage } from '../generations/collect-garbage.js';
import { type CollectableView, type FindHolders, lookForCollectable } from '../generations/collectable.js';
import { newCycleId } from '../job/progress.js';
import { openStagingArea, sweepStaging } from '../job/staging-area.js';
import { sweepPartials } from '../partials/partials.js';
import type { Host } from '../state/host.js';
import { isDiskFull } from '../state/state-file.js';

export interface Collector {
  /**
   * Collects when something may be due, at the first call in any case; the caller sees to it that no cycle runs.
   * @param onChanged called when a report says something else than before
   */
  collectWhenDue(host: Host, onChanged?: () => void): Promise<void>;
  /** What is kept for its holders alone, and what could not be removed, as of the last look. */
  report(): CollectionReport;
}

export interface CollectionReport {
  readonly held: readonly GenerationUserStatus[];
  readonly problems: readonly Problem[];
}

/** A look costs a few directories; a search of all processes, only where something is to be removed. */
const lookAgainMs = 300_000;
/** After a full disk: once a person has freed space, its problem is soon over. */
const fullDiskAgainMs = 10_000;

/** @param find who holds what; /proc says by default */
export function createCollector(find: FindHolders = findHolders): Collector {
  let nextMs = Number.NEGATIVE_INFINITY;
  let last: CollectionReport = { held: [], problems: [] };
  return {
    collectWhenDue: async (host, onChanged) => {
      const nowMs = host.clock.monotonicMs();
      if (nowMs < nextMs) return;
      const before = JSON.stringify(last);
      const { report, afterMs } = await collect(host, { find, last });
      nextMs = nowMs + afterMs;
      last = report;
      if (JSON.stringify(last) !== before) onChanged?.();
    },
    report: () => last,
  };
}

async function collect(
  host: Host,
  { find, last }: { readonly find: FindHolders; readonly last: CollectionReport },
): Promise<{ report: CollectionReport; afterMs: number }> {
  const area = openStagingArea(host.paths, host.durable, newCycleId());
  try {
    sweepStaging(host);
    sweepPartials(host);
    const { removed, more, held, nextDueMs } = await collectGarbage(host, {
      staging: () => area.path(),
      find,
    });
    if (removed > 0 || held.length > 0) host.log.info({ removed, held }, 'old generations collected');
    const dueInMs = nextDueMs === undefined ? lookAgainMs : nextDueMs - host.clock.nowMs();
    const afterMs = more === 'yes' ? 0 : Math.min(Math.max(dueInMs, 0), lookAgainMs);
    return { report: { held, problems: [] }, afterMs };
  } catch (error) {
    const problem = problemOf(toWritError(error));
    const isKnown = last.problems.some(({ code }) => code === problem.code);
    if (!isKnown) host.log.warn({ err: error }, 'old generations could not be removed');
    const afterMs = isDiskFull(error) ? fullDiskAgainMs : lookAgainMs;
    return { report: { held: [], problems: [problem] }, afterMs };
  } finally {
    area.remove(host.log);
  }
}

/** @returns what is kept for its holders alone just now; never throws, as no report may fail for it */
export async function heldNow(
  host: CollectableView,
  find: FindHolders = findHolders,
): Promise<readonly GenerationUserStatus[]> {
  try {
    return (await lookForCollectable(host, find)).held;
  } catch (error) {
    // What cannot be read is said by the report itself.
    if (error instanceof Error) return [];
    throw error;
  }
}

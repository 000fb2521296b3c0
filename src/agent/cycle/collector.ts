// Schedules garbage collection outside of commits: at the start, after a grace period ends, and some time after a removal
// failed or a generation user prevented it. Also removes leftovers of jobs in staging. Never throws: a failed collection
// becomes a warning.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError } from '../../core/errors.js';
import type { GenerationUserStatus } from '../../core/status/status.js';
import { findGenerationUsers } from '../../platform/process/find-processes.js';
import { collectGarbage } from '../generations/collect-garbage.js';
import {
  type CollectableView,
  type FindGenerationUsers,
  findCollectableGenerations,
} from '../generations/collectable.js';
import { newCycleId } from '../job/progress.js';
import { openStagingArea, sweepStaging } from '../job/staging-area.js';
import { sweepPartials } from '../partials/partials.js';
import type { Host } from '../state/host.js';
import { isDiskFull } from '../state/state-file.js';

export interface Collector {
  /**
   * Collects if a collection is due, and always at the first call. The caller ensures that no cycle runs.
   * @param onChanged called when the report differs from the previous one
   */
  collectWhenDue(host: Host, onChanged?: () => void): Promise<void>;
  /** Generations that only their users retain, and failed removals, as of the last collection. */
  report(): CollectionReport;
}

export interface CollectionReport {
  readonly held: readonly GenerationUserStatus[];
  readonly problems: readonly Problem[];
}

/** A round reads a few directories. It searches all processes only when there is something to remove. */
const lookAgainMs = 300_000;
/** The interval after a full disk, so that the problem ends soon after the operator frees space. */
const fullDiskAgainMs = 10_000;

/**
 * Creates a collector. It has collected nothing yet, so its report has two empty lists. Throws nothing.
 * @param find finds the users of generations; the default reads /proc
 * @returns the collector. The next collection is due at the end of the next grace period, after at most 5 minutes, after 10 s if
 *   the disk was full, and at once if more can be removed. A failed collection is one problem in `report().problems`
 */
export function createCollector(find: FindGenerationUsers = findGenerationUsers): Collector {
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
  { find, last }: { readonly find: FindGenerationUsers; readonly last: CollectionReport },
): Promise<{ report: CollectionReport; afterMs: number }> {
  const area = openStagingArea(host.paths, host.durable, newCycleId());
  try {
    sweepStaging(host);
    sweepPartials(host);
    const { removed, hasMore, held, nextDueMs } = await collectGarbage(host, {
      staging: () => area.path(),
      find,
    });
    if (removed > 0 || held.length > 0) host.log.info({ removed, held }, 'old generations collected');
    const dueInMs = nextDueMs === undefined ? lookAgainMs : nextDueMs - host.clock.nowMs();
    const afterMs = hasMore ? 0 : Math.min(Math.max(dueInMs, 0), lookAgainMs);
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

/** @returns the generations that only their users retain now; empty on an error, because no status report may fail for it */
export async function heldNow(
  host: CollectableView,
  find: FindGenerationUsers = findGenerationUsers,
): Promise<readonly GenerationUserStatus[]> {
  try {
    return (await findCollectableGenerations(host, find)).held;
  } catch (error) {
    // The status report itself has the error of an unreadable directory.
    if (error instanceof Error) return [];
    throw error;
  }
}

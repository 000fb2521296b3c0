// One turn of the agent for the releases in their bake time: observe, note, settle or restore. Owns which workers a turn asks
// about, and how soon a restore is tried again; when a turn comes is decided by its caller.
import { readBootId } from '../../platform/process/boot-id.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Exclusive } from '../job/exclusive.js';
import { observeRuns } from '../runs/observe-runs.js';
import type { FailedRelease } from '../settled/bake-failure.js';
import { isUntaken } from '../settled/bake-rules.js';
import type { Host } from '../state/host.js';
import type { Bake } from '../state/ledger.js';
import { restoreSettled } from './restore-settled.js';
import { type BakeReport, type BakeWatch, judgeBakes, recordSettled } from './watch-bakes.js';

/** Within a bake time, and after an end: each end must be seen before its supervisor has restarted the process many times. */
const busyGapMs = 2000;
const recentMs = 600_000;
/** An agent that has just started: a release may come before it has seen how often the processes of a worker end by themselves. */
const firstMs = 120_000;
const idleGapMs = 60_000;
/** After a restore that found nothing to go back to: a person may have changed that. */
const restoreGapMs = 60_000;

export interface BakeTurnOptions {
  /** Asked again after the drivers answered: a reload may have replaced it. */
  readonly host: () => Host;
  readonly exclusive: Exclusive;
  /** Called with the end of a restore, and its reason. */
  readonly onRestored: (end: CycleEnd, reason: string) => void;
  /** The status may be another one. */
  readonly onNews: () => void;
  readonly stop: AbortSignal;
}

/** @returns a turn; it resolves with the milliseconds until the next one, and never rejects */
export function createBakeTurn(options: BakeTurnOptions): () => Promise<number> {
  const { host, stop, onNews } = options;
  let last: (Pick<BakeReport, 'bakes' | 'takers'> & { readonly atMs: number }) | undefined;
  let allObservedAtMs = Number.NEGATIVE_INFINITY;
  let restoreNotBeforeMs = 0;
  let startedAtMs: number | undefined;
  const isNew = ({ clock }: Host): boolean => {
    startedAtMs ??= clock.monotonicMs();
    return clock.monotonicMs() - startedAtMs < firstMs;
  };
  const restore = async (before: Host, failed: readonly FailedRelease[]): Promise<void> => {
    const nowMs = before.clock.monotonicMs();
    if (failed.length === 0 || nowMs < restoreNotBeforeMs) return;
    restoreNotBeforeMs = nowMs + restoreGapMs;
    const end = await restoreSettled(before, failed);
    if (end === undefined) return;
    restoreNotBeforeMs = 0;
    options.onRestored(end, 'BAKE_FAILED');
  };
  const note = (before: Host, observed: BakeWatch['observed']): BakeReport => {
    const observedAtMs = before.clock.monotonicMs();
    const elapsedMs = last && observedAtMs - last.atMs;
    // Evidence that a full disk cannot take counts all the same; the reserve is for what follows from it.
    using _ = before.ledger.tolerateDiskErrors(() => false);
    const since = { elapsedMs, unwritten: last?.bakes, takersBefore: last?.takers };
    const report = judgeBakes(before, { observed, bootId: readBootId(), ...since });
    last = { atMs: observedAtMs, bakes: report.bakes, takers: report.takers };
    recordSettled(before, report);
    return report;
  };
  const observe = async (): Promise<void> => {
    const before = host();
    const nowMs = before.clock.monotonicMs();
    const isAll = nowMs - allObservedAtMs >= (isNew(before) || hasRecentEnds(before) ? busyGapMs : idleGapMs);
    const { runs } = before.ledger.read();
    const observed = await observeRuns(before, (group) => isAll || isBaking(before, group));
    if (isAll) allObservedAtMs = nowMs;
    await options.exclusive(async () => {
      // A restore in the meantime has reset the observed runs: this observation is of the refused release.
      if (stop.aborted || host() !== before || before.ledger.read().runs !== runs) return;
      const report = note(before, observed);
      await restore(before, report.failed);
      if (report.failed.length + report.settled.length > 0) onNews();
    });
  };
  return async () => {
    await observe().catch((error: unknown) => {
      host().log.error({ err: error }, 'releases in their bake time could not be observed');
    });
    return isNew(host()) || isBusy(host()) ? busyGapMs : idleGapMs;
  };
}

/** A release that no worker takes proves nothing, however often it is observed: its daemon may be stopped for weeks. */
function isBusy(host: Host): boolean {
  const { bakes = {} } = host.ledger.read();
  const sinceMs = host.clock.nowMs() - recentMs;
  const isWatched = (bake: Bake): boolean => !isUntaken(bake) || bake.startedAtMs > sinceMs;
  return Object.values(bakes).some(isWatched) || hasRecentEnds(host);
}

function hasRecentEnds({ ledger, clock }: Host): boolean {
  const sinceMs = clock.nowMs() - recentMs;
  return Object.values(ledger.read().runs ?? {}).some(({ ends }) => (ends.at(-1)?.atMs ?? 0) > sinceMs);
}

function isBaking({ ledger, config }: Host, group: string): boolean {
  const { bakes = {} } = ledger.read();
  const uses = config.workers.find((one) => one.name === group)?.uses ?? [];
  return uses.some((bundle) => bakes[bundle] !== undefined);
}

// What a look at the processes of workers found, as a ledger. Computes ledgers; writes none.
import { groupOf } from '../notify/worker-ledger.js';
import { answeringProcess, noteRun } from '../settled/runs-rules.js';
import { withRuns } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import type { Ledger, WorkerLedger, WorkerRuns } from '../state/ledger.js';
import { isSeenByConnection, type ObservedRun } from './observe-runs.js';

export interface RunsLook {
  /** By the keys of the workers; the others stay as they are. */
  readonly observed: ReadonlyMap<string, ObservedRun>;
  readonly bootId: string;
  readonly nowMs: number;
}

/** @returns the ledger with the ends that were found attributed to the bakes that it has */
export function withObservedRuns(
  host: Pick<Host, 'config' | 'groups'>,
  ledger: Ledger,
  { observed, ...now }: RunsLook,
): Ledger {
  const { workers, runs = {}, bakes = {} } = ledger;
  const isByConnection = (group: string): boolean =>
    isSeenByConnection(host.groups.find(({ config }) => config.name === group)?.driver);
  const entries = Object.entries(workers).flatMap(([key, worker]): [string, WorkerRuns][] => {
    const known = runs[key];
    const seen = observed.get(key);
    if (seen === undefined) return known === undefined ? [] : [[key, known]];
    const uses = host.config.workers.find((one) => one.name === groupOf(key))?.uses ?? [];
    const swaps = uses.flatMap((bundle) => bakes[bundle]?.startedAtMs ?? []);
    const swappedAtMs = Math.max(0, ...swaps);
    const isBusy = worker.notNowSinceMs !== undefined;
    const next = noteRun(
      known,
      {
        ...seen,
        // A worker that connects loads policy at its own request, so that a notification does not end its process.
        wasNotified: !isByConnection(groupOf(key)) && known !== undefined && wasNotified(worker, known, seen),
        hadNotTaken: isBusy && known !== undefined && known.sinceMs <= swappedAtMs,
        isBaking: swaps.length > 0,
      },
      now,
    );
    return next === undefined ? [] : [[key, next]];
  });
  return withRuns(ledger, Object.fromEntries(entries));
}

/**
 * True where Writ notified the process that was known. Its notification may come before the observation that finds it, so times
 * show nothing. Where the successor was found first, the first process is forgotten, and it may have been notified.
 */
function wasNotified(
  { process: answered, notifiedAtMs, replacedAtMs }: WorkerLedger,
  known: Pick<WorkerRuns, 'process'>,
  { process }: Pick<ObservedRun, 'process'>,
): boolean {
  const last = answeringProcess(answered);
  if (last !== known.process) return last !== '' && last === process;
  // A process that the notification itself made was not notified.
  return notifiedAtMs !== undefined && replacedAtMs === undefined;
}

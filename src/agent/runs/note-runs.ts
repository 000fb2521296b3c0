// Adds an observation of the processes of workers to a ledger. Pure: its caller writes the ledger.
import { isOfBoot } from '../notify/worker-groups.js';
import { groupOf } from '../notify/worker-ledger.js';
import { answeringProcess, noteRun, startTicksInName, wasProcessNotified } from '../settled/runs-rules.js';
import { withRuns } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import type { Ledger, WorkerLedger, WorkerRuns } from '../state/ledger.js';
import { isSeenByConnection, type ObservedRun } from './observe-runs.js';

export interface RunsObservation {
  /** By the keys of the workers; the others stay as they are. */
  readonly observed: ReadonlyMap<string, ObservedRun>;
  readonly bootId: string;
  readonly nowMs: number;
}

/** @returns the ledger with the ends that were found attributed to the bakes that it has */
export function withObservedRuns(
  host: Pick<Host, 'config' | 'groups'>,
  ledger: Ledger,
  { observed, ...now }: RunsObservation,
): Ledger {
  const { workers, runs = {}, bakes = {} } = ledger;
  const isByConnection = (group: string): boolean =>
    isSeenByConnection(host.groups.find(({ config }) => config.name === group)?.driver);
  const entries = Object.entries(workers).flatMap(([key, worker]): [string, WorkerRuns][] => {
    const known = runs[key];
    const seen = observed.get(key);
    const uses = host.config.workers.find((one) => one.name === groupOf(key))?.uses ?? [];
    const swaps = uses.flatMap((bundle) => bakes[bundle]?.startedAtMs ?? []);
    const swappedAtMs = Math.max(0, ...swaps);
    const isBusy = worker.notNowSinceMs !== undefined;
    const noteOne = (before: WorkerRuns | undefined, found: ObservedRun): WorkerRuns | undefined =>
      noteRun(
        before,
        {
          ...found,
          isDead: found.isDead || found.hasEnded,
          // A worker that connects loads policy at its own request, so that a notification does not end its process.
          wasNotified:
            !isByConnection(groupOf(key)) && before !== undefined && wasNotified(worker, before, found),
          hadNotTaken: isBusy && before !== undefined && before.sinceMs <= swappedAtMs,
          isBaking: uses.some((bundle) => isAttributable(ledger, bundle)),
        },
        { ...now, ...found.asked },
      );
    const between = findNotifiedBetween(worker, known, seen);
    const before = between === undefined ? known : noteOne(known, between);
    // The observation may have found the process before dead, and ended before this one started.
    const isOlder = between !== undefined && seen?.process === undefined;
    const next = seen === undefined || isOlder ? before : noteOne(before, seen);
    return next === undefined ? [] : [[key, next]];
  });
  return withRuns(ledger, Object.fromEntries(entries));
}

/** A first release that failed stays active, because nothing can be restored, and the worker runs with it from then on. */
function isAttributable({ bakes = {}, settledReleases = {} }: Ledger, bundle: string): boolean {
  const bake = bakes[bundle];
  return bake !== undefined && (bake.failure === undefined || settledReleases[bundle] !== undefined);
}

/**
 * A process that starts and dies between two observations is known only because its set was read or it was notified. Without it a
 * crash loop with the rhythm of the observations would never count.
 * @returns that process, later than the known one and earlier than the one that was found; undefined where there is none
 */
function findNotifiedBetween(
  { process }: WorkerLedger,
  known: WorkerRuns | undefined,
  seen: ObservedRun | undefined,
): ObservedRun | undefined {
  // A supervisor's record has the end, and would count it once more.
  if (known === undefined || (seen?.record ?? known.mark) !== undefined) return undefined;
  const answered = answeringProcess(process);
  const startTicks = startTicksInName(answered);
  if (startTicks === undefined || !isOfBoot(process, known.bootId)) return undefined;
  const isLater = startTicks > (startTicksInName(known.process) ?? startTicks);
  const isEarlier =
    seen?.process === undefined || startTicks < (startTicksInName(seen.process) ?? startTicks);
  if (!isLater || !isEarlier) return undefined;
  const asked = { askedAtMs: 0, bootMs: 0 };
  const isFirst = seen?.isFirst === true;
  return { process: answered, record: undefined, isDead: false, isFirst, hasEnded: false, asked, startTicks };
}

/**
 * True where Writ notified the process that was known. Its notification may come before the observation that finds it, so times
 * show nothing. Where the members were read first, the ledger has the successor, and whether the process before it was notified.
 */
function wasNotified(
  worker: WorkerLedger,
  known: Pick<WorkerRuns, 'process'>,
  { process }: Pick<ObservedRun, 'process'>,
): boolean {
  const last = answeringProcess(worker.process);
  // A driver may find no process when the notification begins: then it may have been this one.
  if (last === known.process || last === '') return wasProcessNotified(worker);
  return worker.followsNotified === true && last === process;
}

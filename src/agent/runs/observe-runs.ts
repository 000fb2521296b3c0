// Asks drivers which process each known worker has, and what its supervisor recorded since the last time. Writes
// nothing: a driver may take seconds, and its answers are noted between two jobs.
import { isSystemError, isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { findProcess } from '../../platform/process/processes.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Driver } from '../../workers/contract/driver.js';
import { livenessOf } from '../notify/dead-workers.js';
import { mapBounded, maxParallelNotices } from '../notify/worker-groups.js';
import { groupOf, workerOf } from '../notify/worker-ledger.js';
import type { SeenRun } from '../settled/runs-rules.js';
import type { Host } from '../state/host.js';
import type { WorkerRuns } from '../state/ledger.js';

export interface ObservedRun extends Pick<SeenRun, 'process' | 'startTicks' | 'record' | 'failure'> {
  /** True where no process of the worker runs now. */
  readonly isDead: boolean;
  /** True for the first observation of the worker with this host: nothing shows for how long it was not observed before. */
  readonly isFirst: boolean;
  /** The process that was known has ended, and no other one was found. */
  readonly hasEnded: boolean;
  /** When the driver was asked for the process: its answer whether the worker is dead may take seconds more. */
  readonly asked: { readonly askedAtMs: number; readonly bootMs: number };
}

/** @returns by the keys of the workers; workers of which nothing can be observed are left out */
export async function observeRuns(
  host: Host,
  isConcerned: (group: string) => boolean,
): Promise<ReadonlyMap<string, ObservedRun>> {
  const { workers, runs = {} } = host.ledger.read();
  const observed = new Map<string, ObservedRun>();
  // Names of workers come and go for as long as the agent runs; the ledger bounds their number.
  for (const key of host.observedWorkers) if (workers[key] === undefined) host.observedWorkers.delete(key);
  for (const { config, driver } of host.groups) {
    if (driver === undefined || !canObserve(driver) || !isConcerned(config.name)) continue;
    const keys = Object.entries(workers).flatMap(([key, { goneAtMs }]) =>
      // A worker that crashes leaves its set: the record has the crash, or the processes that start and end show it.
      groupOf(key) === config.name && (goneAtMs === undefined || runs[key] !== undefined) ? [key] : [],
    );
    await mapBounded(keys, maxParallelNotices, async (key) => {
      const run = await observeRun(driver, workerOf(key), {
        known: runs[key],
        isGone: workers[key]?.goneAtMs !== undefined,
        clock: host.clock,
      });
      if (run === undefined) return;
      observed.set(key, { ...run, isFirst: !host.observedWorkers.has(key) });
      host.observedWorkers.add(key);
    });
  }
  return observed;
}

function canObserve({ identity, endsSince }: Driver): boolean {
  return identity !== undefined || endsSince !== undefined;
}

/** @returns true where the workers connect to a running agent, and nothing else shows whether they run */
export function isSeenByConnection(driver: Driver | undefined): boolean {
  return driver?.mayComeForMs !== undefined;
}

/** Workers that connect to the agent leave their set with their connection, and the question would wait for the next one. */
async function isDeadNow(driver: Driver, worker: string): Promise<boolean> {
  return !isSeenByConnection(driver) && (await livenessOf(driver, worker)) === 'dead';
}

/**
 * Some drivers name a process by its pid and start time, others by a time of a supervisor or a file.
 * @returns the start time in clock ticks after boot; undefined where the name has another time, or no such process runs
 */
function readStartTicks(process: string | undefined): number | undefined {
  const [, pid, ticks] = /^(\d+)@(\d+)$/.exec(process ?? '') ?? [];
  try {
    const { startTicks } = findProcess(Number(pid)) ?? {};
    return startTicks === Number(ticks) ? startTicks : undefined;
  } catch (error) {
    // A /proc that hides the processes of other users.
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

/**
 * A driver that is patient with a worker takes a successor that comes soon for the worker itself, and may not find its process.
 * @returns true where the kernel has no process with the pid in this name
 */
function hasEnded(process: string): boolean {
  const [, pid] = /^(\d+)@\d+$/.exec(process) ?? [];
  try {
    return pid !== undefined && findProcess(Number(pid)) === undefined;
  } catch (error) {
    if (isSystemError(error)) return false;
    throw error;
  }
}

interface RunQuestion {
  readonly known: WorkerRuns | undefined;
  readonly isGone: boolean;
  readonly clock: Pick<Clock, 'bootMs' | 'nowMs'>;
}

async function observeRun(
  driver: Driver,
  worker: string,
  { known, isGone, clock }: RunQuestion,
): Promise<Omit<ObservedRun, 'isFirst'> | undefined> {
  const { identity, runIdentity = identity, endsSince, failure } = driver;
  try {
    const process = await runIdentity?.(worker);
    const asked = { askedAtMs: clock.nowMs(), bootMs: clock.bootMs() };
    const isEnded = process === undefined && hasEnded(known?.process ?? '');
    const record = await endsSince?.(worker, known?.mark);
    // A driver may wait seconds for the successor of an ended process, in which further processes start and end.
    const isDead = process === undefined && !isEnded && (await isDeadNow(driver, worker));
    if (process === undefined && record === undefined && !isDead && !isEnded) return undefined;
    const seen = { process, record, isDead, hasEnded: isEnded, asked };
    const found = isGone && process === undefined ? await failure?.(worker) : undefined;
    const startTicks = readStartTicks(process);
    if (found?.hasGivenUp !== 'yes') return { ...seen, ...given({ startTicks }) };
    return { ...seen, failure: `${found.text}; start it with: ${found.command}` };
  } catch (error) {
    // A driver that cannot answer now has observed nothing: the next observation finds what happened in the meantime.
    if (isWritError(error)) return undefined;
    throw error;
  }
}

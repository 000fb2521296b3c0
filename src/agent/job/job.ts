// The frame of every job on a host: its progress, its staging area, the results of its parts, and its one result. Decides nothing;
// the file of the job has its steps.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { toWritError, type WritError } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import { attemptOf, type CycleEnd, type CycleRecord, emptyRecord, finishCycle } from './cycle-result.js';
import { type CycleProgress, type CycleProgressOptions, startCycleProgress } from './progress.js';
import { openStagingArea, type StagingArea } from './staging-area.js';

export interface Job {
  readonly host: Host;
  readonly progress: CycleProgress;
  readonly record: CycleRecord;
  readonly area: StagingArea;
}

export type JobOptions = Omit<CycleProgressOptions, 'clock'>;

/** Runs a job and sweeps its staging area, however it ends. @throws whatever the job throws */
export async function withJob<T>(host: Host, options: JobOptions, act: (job: Job) => Promise<T>): Promise<T> {
  const progress = startCycleProgress({ ...options, clock: host.clock });
  const area = openStagingArea(host.paths, host.durable, progress.cycle);
  try {
    return await act({ host, progress, area, record: emptyRecord() });
  } finally {
    area.remove(host.log);
  }
}

export interface ResultOptions extends JobOptions {
  /** The type of the result; `pull.result` by default. */
  readonly type?: CycleResult['type'];
  /** Turns an error of the job into that of its result; the error itself by default. */
  readonly onError?: (error: unknown, job: Job) => WritError;
  /** Called after the staging area was removed, before the result is made. */
  readonly afterwards?: (job: Job) => void;
}

/**
 * Runs a job and sweeps its staging area, however it ends. An error of the job becomes that of its result, and does not reject.
 * @returns the result, the progress, and the refresh, left out without one
 */
export async function runJob(
  host: Host,
  { type, onError = toWritError, afterwards, ...options }: ResultOptions,
  act: (job: Job) => Promise<void>,
): Promise<CycleEnd> {
  const job = await withJob(host, options, async (opened) => {
    try {
      await act(opened);
    } catch (error) {
      opened.record.error = onError(error, opened);
    }
    return opened;
  });
  afterwards?.(job);
  return endOf(job, type);
}

/**
 * @param type of the result; `pull.result` if left out
 * @returns the result, the progress, and the refresh, left out without one
 */
export function endOf({ host, progress, record }: Job, type?: CycleResult['type']): CycleEnd {
  const refresh = attemptOf(record);
  return { result: finishCycle(host, progress, record, type), progress, ...(refresh ? { refresh } : {}) };
}

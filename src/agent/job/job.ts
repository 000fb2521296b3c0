// The frame of every job on a host: its story, its staging area, what it finds, and the one result that comes of that.
// Decides nothing; what a job does between its steps is its own file's.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { toWritError, type WritError } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import { attemptOf, type CycleEnd, type CycleRecord, emptyRecord, finishCycle } from './cycle-result.js';
import { type CycleStory, openStory, type StoryOptions } from './progress.js';
import { openStagingArea, type StagingArea } from './staging-area.js';

export interface Job {
  readonly host: Host;
  readonly story: CycleStory;
  readonly record: CycleRecord;
  readonly area: StagingArea;
}

export type JobOptions = Omit<StoryOptions, 'clock'>;

/** Runs a job and sweeps its staging area, however it ends. @throws whatever the job throws */
export async function withJob<T>(host: Host, options: JobOptions, act: (job: Job) => Promise<T>): Promise<T> {
  const story = openStory({ ...options, clock: host.clock });
  const area = openStagingArea(host.paths, host.durable, story.cycle);
  try {
    return await act({ host, story, area, record: emptyRecord() });
  } finally {
    area.remove(host.log);
  }
}

export interface ResultOptions extends JobOptions {
  /** Which command's result it is; `pull.result` by default. */
  readonly type?: CycleResult['type'];
  /** What an error of the job is in its result; the error itself by default. */
  readonly onError?: (error: unknown, job: Job) => WritError;
  /** What is still to be found when the staging area is gone. */
  readonly afterwards?: (job: Job) => void;
}

/** As withJob, for a job whose errors are its result. Never rejects for what the job meets. */
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

/** @param type which command's result it is */
export function endOf({ host, story, record }: Job, type?: CycleResult['type']): CycleEnd {
  const refresh = attemptOf(record);
  return { result: finishCycle(host, story, record, type), story, ...(refresh ? { refresh } : {}) };
}

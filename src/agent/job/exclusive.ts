// The types of running one job at a time, and of the events that a job reports while it runs. turns.ts has the queue; this file
// never waits.
import type { CycleEventLine, Problem } from '../../core/cycle/cycle-report.js';
import type { Step } from '../../core/cycle/sync-machine.js';
import { WritError } from '../../core/errors.js';
import type { DownloadedBytes } from '../../core/status/status.js';

/** Runs a job while nothing else changes the host; its events show that it makes progress. */
export type Exclusive = <T>(job: (reportEvent: CycleEventListener) => Promise<T>) => Promise<T>;

export type CycleEventListener = (event: CycleEventLine) => void;

/** For a command that holds the lock: no other job runs, and nothing uses the events. */
export const exclusiveAlone: Exclusive = (job) => job(() => undefined);

/**
 * Gives the turn of a job back until `wait` settles, and takes the next one: other jobs may change the host meanwhile.
 * Not called again before it resolves.
 */
export type YieldTurn = <T>(wait: () => Promise<T>) => Promise<T>;

/**
 * @returns INTERRUPTED with the fact reason `another-job`. It ends a cycle for another job while it waits for the network, is not
 *   a failure, and the cycle begins again
 */
export function endedForAnotherJob(): WritError {
  const text = 'ended early for another request; it begins again after that, and what was downloaded is kept';
  return new WritError('INTERRUPTED', text, { facts: { reason: anotherJob } });
}

/**
 * @returns whether the agent itself ended the job early for another one; false for an interruption by a client or a
 * stop request
 */
export function isEndedForAnotherJob({ code, facts }: Pick<Problem, 'code' | 'facts'>): boolean {
  return code === 'INTERRUPTED' && facts['reason'] === anotherJob;
}

const anotherJob = 'another-job';

/** For a job beside which no other one runs. */
export const keepTurn: YieldTurn = (wait) => wait();

/** A sign of progress of the job that has the turn. */
export type Work =
  | { readonly kind: 'began' | 'ended' }
  /** Until the next report this step may take its whole time limit. */
  | { readonly kind: 'step'; readonly step: Step | 'restore'; readonly download?: DownloadedBytes };

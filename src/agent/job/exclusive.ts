// One job at a time: what whoever runs a job alone is given, and what a job tells while it runs. The queue behind it is
// turns.ts; this file never waits.
import type { CycleEventLine, Problem } from '../../core/cycle/cycle-report.js';
import type { Step } from '../../core/cycle/sync-machine.js';
import { WritError } from '../../core/errors.js';
import type { DownloadedBytes } from '../../core/status/status.js';

/** Runs a job while nothing else changes the host; what the job tells of itself shows that it goes on. */
export type Exclusive = <T>(job: (hear: Hear) => Promise<T>) => Promise<T>;

export type Hear = (event: CycleEventLine) => void;

/** For a command that holds the lock: nothing else runs, and nobody watches. */
export const exclusiveAlone: Exclusive = (job) => job(() => undefined);

/**
 * Gives the turn of a job back until `wait` settles, and takes the next one: other jobs may change the host meanwhile.
 * Not called again before it resolves.
 */
export type YieldTurn = <T>(wait: () => Promise<T>) => Promise<T>;

/** Why a cycle ends that waited for the network while another job was asked for: no failure, and it begins again. */
export function endedForAnotherJob(): WritError {
  const text = 'ended early for another request; it begins again after that, and what was downloaded is kept';
  return new WritError('INTERRUPTED', text, { facts: { reason: anotherJob } });
}

export function isEndedForAnotherJob({ code, facts }: Pick<Problem, 'code' | 'facts'>): boolean {
  return code === 'INTERRUPTED' && facts['reason'] === anotherJob;
}

const anotherJob = 'another-job';

/** For a job beside which no other one runs. */
export const keepTurn: YieldTurn = (wait) => wait();

/** That the one job at a time goes on. */
export type Work =
  | { readonly kind: 'began' | 'ended' }
  /** What comes next may take as long as this step. */
  | { readonly kind: 'step'; readonly step: Step | 'restore'; readonly download?: DownloadedBytes };

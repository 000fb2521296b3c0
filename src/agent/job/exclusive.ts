// One job at a time: what whoever runs a job alone is given, and what a job tells while it runs. The queue behind it is
// cycle/cycle-runner.ts; this file never waits.
import type { CycleEventLine } from '../../core/cycle/cycle-report.js';
import type { Step } from '../../core/cycle/sync-machine.js';
import type { Downloading } from '../../core/status/status.js';

/** Runs a job while nothing else changes the host; what the job tells of itself shows that it goes on. */
export type Exclusive = <T>(job: (hear: Hear) => Promise<T>) => Promise<T>;

export type Hear = (event: CycleEventLine) => void;

/** For a command that holds the lock: nothing else runs, and nobody watches. */
export const exclusiveAlone: Exclusive = (job) => job(() => undefined);

/** That the one job at a time goes on. */
export type Work =
  | { readonly kind: 'began' | 'ended' }
  /** What comes next may take as long as this step. */
  | { readonly kind: 'step'; readonly step: Step | 'restore'; readonly download?: Downloading };

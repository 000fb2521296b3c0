// The progress of one cycle: its present step (by the table of the machine), the time of each step, and the events for watchers.
// Decides nothing and touches no file.
import { randomBytes } from 'node:crypto';
import type { CycleEventLine, Trigger, WorkerWait } from '../../core/cycle/cycle-report.js';
import {
  type CycleEvent,
  type CycleState,
  firstStep,
  type Step,
  transition,
} from '../../core/cycle/sync-machine.js';
import { toWritError, WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';
import { isEndedForAnotherJob } from './exclusive.js';

export interface StepRecord {
  readonly step: Step | 'restore';
  readonly verdict: 'ok' | 'warn' | 'fail' | 'skip';
  readonly text: string;
  readonly durationMs: number;
}

/** The result of a step: its value for the next one, and a line for people. */
export interface StepAnswer<T> {
  readonly value: T;
  readonly text: string;
  readonly verdict?: 'ok' | 'warn' | 'fail' | 'skip';
}

export interface CycleProgress {
  readonly cycle: string;
  readonly trigger: Trigger;
  readonly startedAtMs: number;
  readonly steps: readonly StepRecord[];
  /** Runs the step the machine is in, notifies watchers, and moves on; an error leaves the machine in the step. */
  step<T>(step: Step, act: () => Promise<StepAnswer<T>> | StepAnswer<T>): Promise<T>;
  /** Runs the restore of the previous generation, which is not a step of the machine. */
  restore<T>(act: () => Promise<StepAnswer<T>>): Promise<T>;
  /** Passes an event to the machine. @returns its new state */
  note(event: CycleEvent): CycleState;
  reportBytes(step: Step, doneBytes: number, totalBytes: number): void;
  /** Reports that so many of the bytes of the download were on disk before. */
  resumes(bytes: number): void;
  /** Reports a wait for workers, which is not a step. */
  readonly awaits: (wait: WorkerWait) => void;
  /** @returns an id for one notification of one worker; no other notification ever has it */
  readonly nextNotificationId: () => string;
  durationMs(): number;
  /** Bytes of archives that were received so far. */
  fetchedBytes(): number;
}

export interface CycleProgressOptions {
  readonly cycle: string;
  readonly trigger: Trigger;
  readonly clock: Clock;
  readonly onEvent?: (event: CycleEventLine) => void;
  /** Called when a server sends an archive from its first byte, of which a part was on disk. */
  readonly onSentAgain?: () => void;
  /** The first step: a rollback begins at the swap, a recovery after it. `refresh` by default. */
  readonly firstStep?: Step;
}

const progressEveryMs = 100;

/** Begins the progress of a cycle; the first event was sent when this returns. */
export function startCycleProgress(options: CycleProgressOptions): CycleProgress {
  const { cycle, trigger, clock } = options;
  const emit = (event: CycleEventLine): void => options.onEvent?.(event);
  const startedAtMs = clock.nowMs();
  const startedMonotonicMs = clock.monotonicMs();
  const steps: StepRecord[] = [];
  let state: CycleState = { name: 'running', step: options.firstStep ?? firstStep };
  let lastProgressMs = Number.NEGATIVE_INFINITY;
  const fetched = { bytes: 0, doneBytes: 0, wasHereBytes: 0 };

  const note = (event: CycleEvent): CycleState => {
    const following = transition(state, event);
    if (following === undefined) throw impossible(state, event);
    state = following;
    return state;
  };
  const run = async <T>(
    step: Step | 'restore',
    act: () => Promise<StepAnswer<T>> | StepAnswer<T>,
  ): Promise<T> => {
    const begunMs = clock.monotonicMs();
    const finish = (verdict: StepRecord['verdict'], text: string): void => {
      const record = { step, verdict, text, durationMs: Math.round(clock.monotonicMs() - begunMs) };
      steps.push(record);
      emit({ type: 'step.finished', cycle, ...record });
    };
    emit({ type: 'step.started', cycle, step });
    try {
      const answer = await act();
      finish(answer.verdict ?? 'ok', answer.text);
      return answer.value;
    } catch (error) {
      const end = toWritError(error);
      finish(isEndedForAnotherJob(end) ? 'warn' : 'fail', end.message);
      throw error;
    }
  };

  emit({ type: 'cycle.started', cycle, trigger, atMs: startedAtMs });
  return {
    cycle,
    trigger,
    startedAtMs,
    steps,
    note,
    step: async (step, act) => {
      if (state.name !== 'running' || state.step !== step) throw impossible(state, { type: 'done' }, step);
      const value = await run(step, act);
      note({ type: 'done' });
      return value;
    },
    restore: (act) => run('restore', act),
    nextNotificationId: notificationIds(cycle),
    reportBytes: (step, doneBytes, totalBytes) => {
      // The count begins again where a mirror sent wrong bytes, or the cycle tries again without a bundle.
      const moreBytes = doneBytes < fetched.doneBytes ? doneBytes : doneBytes - fetched.doneBytes;
      fetched.bytes += Math.max(0, moreBytes - fetched.wasHereBytes);
      fetched.wasHereBytes = Math.max(0, fetched.wasHereBytes - moreBytes);
      fetched.doneBytes = doneBytes;
      const nowMs = clock.monotonicMs();
      if (nowMs - lastProgressMs < progressEveryMs && doneBytes < totalBytes) return;
      lastProgressMs = nowMs;
      emit({ type: 'step.progress', cycle, step, doneBytes, totalBytes });
    },
    resumes: (bytes) => {
      // Subtracted from the next reports of progress, not at once: a transfer may end without a report.
      fetched.wasHereBytes = bytes;
      if (bytes === 0) options.onSentAgain?.();
    },
    awaits: (wait) => emit({ type: 'workers.awaited', cycle, ...wait }),
    durationMs: () => Math.round(clock.monotonicMs() - startedMonotonicMs),
    fetchedBytes: () => fetched.bytes,
  };
}

/** @returns ids for the notifications of this cycle, in their order: a cycle's own id is never used again */
export function notificationIds(cycle: string): () => string {
  let count = 0;
  return () => {
    count += 1;
    return `${cycle}.${count}`;
  };
}

function impossible(state: CycleState, event: CycleEvent, step?: Step): WritError {
  return new WritError('INTERNAL', `the cycle cannot handle ${event.type} now`, {
    facts: { state, event, step },
  });
}

/** Passes steps that this cycle has no work for. */
export async function skipSteps(
  progress: Pick<CycleProgress, 'step'>,
  steps: readonly Step[],
): Promise<void> {
  for (const step of steps)
    await progress.step(step, () => ({ value: undefined, text: '', verdict: 'skip' }));
}

/** An id for one cycle, as `c-7f20c1`; long enough that history has no two. */
export function newCycleId(): string {
  return `c-${randomBytes(4).toString('hex')}`;
}

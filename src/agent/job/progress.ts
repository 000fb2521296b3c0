// The story of one cycle while it happens: which step it is in (by the machine's table), how long each took,
// and the events that watchers see. Decides nothing and touches no file.
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

/** What a step says when it is done: its value for the next one, and a line for people. */
export interface StepAnswer<T> {
  readonly value: T;
  readonly text: string;
  readonly verdict?: 'ok' | 'warn' | 'fail' | 'skip';
}

export interface CycleStory {
  readonly cycle: string;
  readonly trigger: Trigger;
  readonly startedAtMs: number;
  readonly steps: readonly StepRecord[];
  /** Runs the step the machine is in, notifies watchers, and moves on; an error leaves the machine in the step. */
  step<T>(step: Step, act: () => Promise<StepAnswer<T>> | StepAnswer<T>): Promise<T>;
  /** Putting the previous generation back; not a step of the way forward. */
  restore<T>(act: () => Promise<StepAnswer<T>>): Promise<T>;
  /** Notifies the machine what a step's end means. */
  note(event: CycleEvent): CycleState;
  progress(step: Step, doneBytes: number, totalBytes: number): void;
  /** So many of the bytes that progress counts were here before. */
  resumes(bytes: number): void;
  /** Somebody is waited for; no step of its own. */
  readonly awaits: (wait: WorkerWait) => void;
  /** @returns an id for one notification of one worker; no other notification ever has it */
  readonly nextNotificationId: () => string;
  durationMs(): number;
  /** Bytes of archives that came so far. */
  fetchedBytes(): number;
}

export interface StoryOptions {
  readonly cycle: string;
  readonly trigger: Trigger;
  readonly clock: Clock;
  readonly onEvent?: (event: CycleEventLine) => void;
  /** Called when a server sends from the first byte what was here in part. */
  readonly onSentAgain?: () => void;
  /** Where the machine stands: a rollback begins at the swap, a recovery behind it. `refresh` by default. */
  readonly firstStep?: Step;
}

const progressEveryMs = 100;

/** Opens the story of a cycle; the first event is out when this returns. */
export function openStory(options: StoryOptions): CycleStory {
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
    progress: (step, doneBytes, totalBytes) => {
      // It begins again where a mirror brought the wrong bytes, or the cycle tries again without a bundle.
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
      // Taken off what progress tells of them, not at once: a transfer may end before it tells of any.
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
export async function skipSteps(story: Pick<CycleStory, 'step'>, steps: readonly Step[]): Promise<void> {
  for (const step of steps) await story.step(step, () => ({ value: undefined, text: '', verdict: 'skip' }));
}

/** An id for one cycle, as `c-7f20c1`; long enough that history has no two. */
export function newCycleId(): string {
  return `c-${randomBytes(4).toString('hex')}`;
}

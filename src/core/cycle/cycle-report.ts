// What a cycle tells: events while it runs, and the result that status, history, `--json` and the last lines
// of `writ pull` are made from. Owns the shapes; the fields are a promise (additive within schema 1).
import type { ErrorCode } from '../error-codes.js';
import type { Outcome, Step } from './sync-machine.js';

/**
 * Who asked for the cycle. `repair`: policy on disk was not what was signed, and was made again. Five are none: `verify`, a look
 * found that and repaired nothing; `stale`, policy grew too old or is fresh again; `pending`, workers were notified apart from the cycles; `pause`, one began or ended; `forget`, a person
 * had refusals forgotten.
 */
export type Trigger =
  | 'start'
  | 'poll'
  | 'pull'
  | 'force'
  | 'rollback'
  | 'recovery'
  | 'reload'
  | 'stale'
  | 'repair'
  | 'verify'
  | 'pending'
  | 'pause'
  | 'forget';

export interface Problem {
  readonly code: ErrorCode;
  readonly message: string;
  readonly hint: string;
  readonly facts: Readonly<Record<string, unknown>>;
}

/** One bundle's part of the result. */
export interface BundleResult {
  readonly bundle: string;
  readonly channel: string;
  readonly outcome: Outcome;
  /** Serial active before; absent when none was. */
  readonly fromSerial?: number;
  /** Active after the command; left out where it is `toSerial` of an activation, and else `fromSerial`. */
  readonly activeSerial?: number;
  /** Serial the repository offers, whether or not it became active. */
  readonly toSerial?: number;
  readonly revision?: string;
  /** The release was refused in an earlier cycle and has not changed: nothing was fetched. */
  readonly remembered?: true;
  /** Epoch milliseconds from which a remembered refusal is tried again. */
  readonly retryAtMs?: number;
  readonly problem?: Problem;
  /** Of a rollback: the release that was left is what the repository offers, so that `writ resume` brings it back. */
  readonly resumable?: true;
  /** The publisher withdrew `fromSerial`. */
  readonly withdrawn?: true;
  /** Serial that `toSerial` corrects; left out where it corrects none. */
  readonly fixes?: number;
  /** Epoch milliseconds: since when a newer release than the active one is offered that this host could not have. */
  readonly missedSinceMs?: number;
}

export type WorkerState = 'confirmed' | 'notified' | 'refused' | 'unreachable';

export interface WorkerResult {
  readonly group: string;
  readonly worker: string;
  readonly state: WorkerState;
  readonly generation: number;
  readonly text: string;
  readonly atMs: number;
  /** When its probe showed the generation, epoch milliseconds; left out where no probe did. */
  readonly provenAtMs?: number;
  /** Names the notification that this answers, as `c-7f20c1aa.3`; left out where nobody was notified. */
  readonly notificationId?: string;
  /** The process that was notified, where its driver can tell one from another. */
  readonly process?: string;
  /** Beside `unreachable`: whether its process was seen alive behind the notification. */
  readonly lives?: 'yes' | 'no';
  /** Beside `unreachable`: it was reached, and said that it is busy. */
  readonly notNow?: 'yes';
  /** Beside `unreachable`: it was not signalled, because the process may be a stranger's. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP';
  /** How its probe ended that gave no verdict, beside its own word; left out where it was heard, or there is none. */
  readonly silence?: string;
  /** After a way back: its probe showed the generation, and is asked a second time from then on, epoch milliseconds. */
  readonly secondProbeAtMs?: number;
}

export interface CycleResult {
  readonly schema: 1;
  readonly type: 'pull.result' | 'rollback.result' | 'repair.result';
  /** As `c-7f20`. */
  readonly cycle: string;
  readonly trigger: Trigger;
  readonly outcome: Outcome;
  readonly exitCode: number;
  /** For `activated`: every worker that was notified proved it. */
  readonly confirmed: boolean;
  /** `current` points elsewhere than before. */
  readonly changed: boolean;
  readonly fromGeneration?: number;
  /** The active generation after the cycle; absent when none is. */
  readonly generation?: number;
  readonly bundles: readonly BundleResult[];
  readonly workers: readonly WorkerResult[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly startedAtMs: number;
  readonly durationMs: number;
}

/** Workers that are not there, and may come yet. */
export interface WorkerWait {
  readonly group: string;
  /** Their names, or how many. */
  readonly missing: readonly string[];
  readonly untilAtMs: number;
}

type CycleLine<Type extends string, Members = unknown> = {
  readonly type: Type;
  readonly cycle: string;
} & Readonly<Members>;

/** A line of the story while it happens; `writ pull` shows them live. */
export type CycleEventLine =
  | CycleLine<'cycle.started', { trigger: Trigger; atMs: number }>
  | CycleLine<'step.started', { step: Step | 'restore' }>
  | CycleLine<'step.progress', { step: Step; doneBytes: number; totalBytes: number }>
  | CycleLine<'step.finished', StepResult>
  | CycleLine<'workers.awaited', WorkerWait>
  | CycleLine<'cycle.awaited', CycleWait>;

/** A request waits for the end of another cycle: how far that one is. Events of that cycle follow until its end. */
export interface CycleWait {
  readonly trigger: Trigger;
  readonly step: Step | 'restore';
  /** Of its download; left out where none runs. */
  readonly doneBytes?: number;
  readonly totalBytes?: number;
  /** No server resumes this download: it is not ended for a request. */
  readonly resumable?: false;
}

/** How a step ended. */
export interface StepResult {
  readonly step: Step | 'restore';
  readonly verdict: 'ok' | 'warn' | 'fail' | 'skip';
  readonly text: string;
  readonly durationMs: number;
}

// The output of a cycle: events while it runs, and its result, from which status, history, `--json` and the last lines of `writ
// pull` are made. Types only; members are only added within schema 1.
import type { ErrorCode } from '../error-codes.js';
import type { Outcome, Step } from './sync-machine.js';

/**
 * Why an entry of the history exists. `repair`: the policy on disk was damaged, and the cycle repaired it. Five triggers belong to
 * no cycle: `verify`, a scan found damage and repaired nothing; `stale`, policy became stale or fresh again; `pending`, workers were
 * notified between cycles; `pause`, a pause began or ended; `forget`, an operator deleted refusals.
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

/** The result of one bundle. */
export interface BundleResult {
  readonly bundle: string;
  readonly channel: string;
  readonly outcome: Outcome;
  /** Serial that was active before; undefined without one. */
  readonly fromSerial?: number;
  /** Serial that is active after the command. Undefined if it is `toSerial` of an activation, or else `fromSerial`. */
  readonly activeSerial?: number;
  /** Serial of the offered release, active or not. */
  readonly toSerial?: number;
  readonly revision?: string;
  /** The release has a refusal from an earlier cycle and has not changed, so that nothing was fetched. */
  readonly remembered?: true;
  /** Epoch milliseconds: when the refused release is tried again. */
  readonly retryAtMs?: number;
  readonly problem?: Problem;
  /** For a rollback: the repository still offers the release that was left, so that `writ resume` activates it again. */
  readonly resumable?: true;
  /** The publisher withdrew `fromSerial`. */
  readonly withdrawn?: true;
  /** Serial that `toSerial` corrects; undefined if it corrects none. */
  readonly fixes?: number;
  /** Epoch milliseconds: since when the repository has offered a newer release that this host could not fetch or prepare. */
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
  /** When a probe showed the generation, epoch milliseconds; undefined without such a probe. */
  readonly provenAtMs?: number;
  /** Id of the notification that caused this state, as `c-7f20c1aa.3`; undefined without a notification. */
  readonly notificationId?: string;
  /** The notified process, if the driver distinguishes processes. */
  readonly process?: string;
  /** Only with `unreachable`: whether its process was alive after the notification. */
  readonly lives?: 'yes' | 'no';
  /** Only with `unreachable`: the worker was reached and replied that it is busy. */
  readonly notNow?: 'yes';
  /** Only with `unreachable`: the worker was not signalled, because the process may belong to another program. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP';
  /** Why the last probe gave no verdict, in addition to `text`. Undefined if it gave one, or without a probe. */
  readonly silence?: string;
  /** After a restore, and after one probe showed the generation: when a second probe is run, epoch milliseconds. */
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
  /** For `activated`: each notified worker confirmed the generation. */
  readonly confirmed: boolean;
  /** The link `current` has another target than before. */
  readonly changed: boolean;
  readonly fromGeneration?: number;
  /** The active generation after the cycle; undefined without one. */
  readonly generation?: number;
  readonly bundles: readonly BundleResult[];
  readonly workers: readonly WorkerResult[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  readonly startedAtMs: number;
  readonly durationMs: number;
}

/** A wait for workers that do not exist yet. */
export interface WorkerWait {
  readonly group: string;
  /** Names of the missing workers, or their number. */
  readonly missing: readonly string[];
  readonly untilAtMs: number;
}

type CycleLine<Type extends string, Members = unknown> = {
  readonly type: Type;
  readonly cycle: string;
} & Readonly<Members>;

/** An event of a cycle while it runs; `writ pull` shows it at once. */
export type CycleEventLine =
  | CycleLine<'cycle.started', { trigger: Trigger; atMs: number }>
  | CycleLine<'step.started', { step: Step | 'restore' }>
  | CycleLine<'step.progress', { step: Step; doneBytes: number; totalBytes: number }>
  | CycleLine<'step.finished', StepResult>
  | CycleLine<'workers.awaited', WorkerWait>
  | CycleLine<'cycle.awaited', CycleWait>;

/** A request waits for the end of another cycle: its current step. The events of that cycle follow until its end. */
export interface CycleWait {
  readonly trigger: Trigger;
  readonly step: Step | 'restore';
  /** Bytes of the download; undefined if none runs. */
  readonly doneBytes?: number;
  readonly totalBytes?: number;
  /** No server can resume this download, so that a request does not interrupt it. */
  readonly resumable?: false;
}

/** The result of a step. */
export interface StepResult {
  readonly step: Step | 'restore';
  readonly verdict: 'ok' | 'warn' | 'fail' | 'skip';
  readonly text: string;
  readonly durationMs: number;
}

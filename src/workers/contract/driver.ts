// The interface between the agent and the programs that use the policy: one file for each driver, registered in registry.ts.
// A driver notifies workers and reports their answers. It does not decide an outcome, and claims nothing beyond the answers.

import type { ProcessConfig } from '../../core/config/config.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { ProcessInfo } from '../../platform/process/processes.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';

/**
 * The value of the answers of this kind of worker:
 * `true`   the worker answers after the effect, and its success and its refusal are both reliable: it can confirm;
 * `early`  the worker only accepts or queues the request: its answer proves nothing;
 * `silent` the worker does not answer, as for a signal.
 */
export type VerdictClass = 'true' | 'early' | 'silent';

/** The generation that a worker must use. */
export interface Target {
  readonly generation: number;
  /** Real path of the generation directory, never through the `current` link. */
  readonly path: string;
}

/**
 * The answer of one worker, or its absence:
 * `confirmed`   the worker uses this generation; only a driver of class `true` may return it;
 * `notified`    the worker was notified; whether it uses the generation is unknown;
 * `refused`     the worker refused: the previous generation is restored;
 * `unreachable` no answer in time: notified again between cycles, never a reason for a restore.
 */
export interface Answer {
  readonly kind: 'confirmed' | 'notified' | 'refused' | 'unreachable';
  /** Bounded (2 kB); may be shown to people. */
  readonly text: string;
  /** With `unreachable`: the worker is alive, kept its old state until the deadline, and its kind refuses by silence. */
  readonly silence?: 'refuses';
  /** With `unreachable`: a deferral. The worker was reached, is busy, and gave no verdict; it is notified again soon. */
  readonly notNow?: 'yes';
  /** With `unreachable`: the reason. For PROCESS_UNKNOWN no signal was sent, because it may be another program's process. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP';
}

/** The process of a worker, or the reason why it is unknown. */
export type Daemon =
  | { readonly kind: 'found'; readonly process: ProcessInfo }
  | {
      readonly kind: 'dead' | 'unknown';
      /** A text with the reason. */
      readonly reason: string;
      /** What an operator can do about it. */
      readonly hint?: string;
    };

export interface ResetOptions {
  readonly target: Target;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export type Liveness = 'alive' | 'dead' | 'unknown';

/** How processes of a worker ended, according to its supervisor. */
export interface RecordedEnds {
  /** Ends without a request: a crash, an unexpected exit code, a watchdog, a supervisor that gave up. */
  readonly abnormal: number;
  /** Ends on request, or recorded as success. */
  readonly clean: number;
  /** New process runs without a record of how the previous ones ended. */
  readonly unrecorded: number;
  /** The position in the record, for the next call. At most 500 characters. */
  readonly mark: string;
}

/** The record of a supervisor about a worker that does not run. It exists only after a failure, never after a stop. */
export interface SupervisorFailure {
  /** `yes`: the supervisor does not start it again by itself. */
  readonly hasGivenUp: 'yes' | 'no';
  /** The record, with the limit that was reached. */
  readonly text: string;
  /** The command that starts the worker again. */
  readonly command: string;
}

export interface Driver {
  readonly verdictClass: VerdictClass;
  /** Opens the sockets of the driver; called once before the first cycle. Absent for a driver without sockets. */
  open?(): Promise<void>;
  /**
   * Lists the ids of the current members, sorted. Ids are stable between cycles.
   * @throws WritError WORKER_UNREACHABLE if the members cannot be listed, such as in an unreadable directory
   */
  members(): Promise<readonly string[]>;
  /** Notifies one worker and waits for its answer. Never throws because of a worker. */
  reset(worker: string, options: ResetOptions): Promise<Answer>;
  /**
   * Ends one worker, starts it again, and waits until it is ready. Used for files that a running process cannot read again,
   * such as its own configuration. Absent if the driver cannot restart. Never throws because of a worker. A restarted process
   * is `notified`: only a probe or its own answer can confirm that it read this generation.
   */
  restart?: ((worker: string, options: ResetOptions) => Promise<Answer>) | undefined;
  /** Reads whether one worker is alive now; a zombie is dead. Absent if the driver cannot see processes. */
  liveness?: ((worker: string) => Promise<Liveness>) | undefined;
  /**
   * Reads the process identity, which distinguishes the process of a worker from an earlier one, such as pid and start time: a
   * restarted process has confirmed nothing. A connection follows after a slash, as in `4711@88/2`. Undefined if the process
   * cannot be seen now. Absent if the driver never sees it.
   */
  identity?: ((worker: string) => Promise<string | undefined>) | undefined;
  /**
   * As `identity`, but for counting process runs: a process that connects again has confirmed nothing, but has not ended.
   * Absent if `identity` has no connection.
   */
  runIdentity?: ((worker: string) => Promise<string | undefined>) | undefined;
  /**
   * Counts how processes of a worker ended since the mark of an earlier call; none without a mark. Undefined if the record
   * cannot be read now. Absent without a supervisor that keeps a record.
   */
  endsSince?: ((worker: string, mark: string | undefined) => Promise<RecordedEnds | undefined>) | undefined;
  /**
   * Reads how a worker failed that does not run, according to its supervisor. Undefined for a worker that runs, was stopped, is
   * about to be started, or has no record. Absent without a supervisor that keeps a record.
   */
  failure?: ((worker: string) => Promise<SupervisorFailure | undefined>) | undefined;
  /**
   * Reads the pid of the main process of a worker, for read-only inspection, such as of its user and its confinement. Undefined
   * if the process does not run. Absent if the driver cannot know it.
   */
  pid?: ((worker: string) => Promise<number | undefined>) | undefined;
  /**
   * Finds the process of a worker, or the reason why it is unknown, so that an operator can see which process would be
   * signalled. Absent if the driver does not search for processes.
   */
  process?: ((worker: string) => Promise<Daemon>) | undefined;
  /**
   * `yes`: a notification never replaces the process of a worker, so a new process right after an answer has not answered.
   * Absent if a daemon may replace itself during a reload.
   */
  readonly keepsProcess?: 'yes';
  /**
   * For workers that connect by themselves. @returns milliseconds within which all running workers connect after `open`; 0
   * after that time. Absent if the driver finds its workers
   */
  mayComeForMs?(): number;
  /** Called after every swap and at the start with the generation that later connecting workers must use. */
  activeChanged?(target: Target | undefined): void;
  /** Closes the sockets. Absent for a driver without sockets. */
  close?(): Promise<void>;
}

export interface DriverContext {
  /** Name of the worker group. */
  readonly group: string;
  /** `yes`: every bundle that the group uses has a check that runs before the swap. Absent: no. */
  readonly checked?: 'yes' | 'no';
  readonly log: Logger;
  readonly clock: Clock;
  /** For files of the driver, such as its socket. */
  readonly durable: DurableFs;
  /** /run/writ or its configured place: where the `native` driver binds its socket (workers/GROUP.sock). */
  readonly runDirectory: string;
  /** The configured process of a worker; absent: the default of the driver. */
  readonly process?: ProcessConfig;
  /** Search path for programs, in the form of PATH; absent: the fixed paths of run-command. */
  readonly programPath?: string;
  /**
   * Called for an answer outside a reset: a worker connected between cycles, or answered after its deadline. Not called for an
   * answer that reset() returns.
   * @param identity of the process that answered, as from `identity`; absent if the driver does not know it
   */
  readonly onLateAnswer?: (worker: string, generation: number, answer: Answer, identity?: string) => void;
}

/** One kind of driver: its key in `reset:`, the JSON Schemas of its options, and how to make one. */
export interface DriverKind {
  /** The key under `reset:` that selects the driver, such as `kresd`. */
  readonly name: string;
  /** JSON Schemas of its members in `reset:`, with its own key; `timeout` and `min` are common to all drivers. */
  readonly properties: Readonly<Record<string, object>>;
  /** Required members besides its own key. */
  readonly required: readonly string[];
  /** True if the driver knows its processes without `process`, such as from a supervisor. */
  readonly knowsProcess?: boolean;
  /**
   * Creates the driver from options that the schema accepted. Must not block or open anything.
   * @throws WritError CONFIG_INVALID for a mistake that the schema cannot detect
   */
  create(options: Readonly<Record<string, unknown>>, context: DriverContext): Driver;
}

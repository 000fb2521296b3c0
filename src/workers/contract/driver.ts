// The contract between the cycle and whatever uses the policy: one driver a file, registered in registry.ts.
// A driver notifies and reports what it heard; it never decides an outcome, and never claims more than it knows.

import type { ProcessConfig } from '../../core/config/config.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { ProcessInfo } from '../../platform/process/processes.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';

/**
 * What an answer of this kind of worker is worth:
 * `true`   given after the effect, and right both ways: it confirms;
 * `early`  accepted or queued: proves nothing;
 * `silent` no answer at all, as a signal.
 */
export type VerdictClass = 'true' | 'early' | 'silent';

/** The generation that a worker is to use. */
export interface Target {
  readonly generation: number;
  /** Real path of the generation directory, never through the `current` link. */
  readonly path: string;
}

/**
 * What one worker said, or did not:
 * `confirmed`   it proved that it uses this generation; only a driver of class `true` may say so;
 * `notified`    it was notified; whether it obeyed is unknown;
 * `refused`     it refused: the generation is rolled back;
 * `unreachable` nobody answered in time: retried apart from the cycle, never a reason to roll back.
 */
export interface Answer {
  readonly kind: 'confirmed' | 'notified' | 'refused' | 'unreachable';
  /** Bounded (2 kB); may be shown to people. */
  readonly text: string;
  /** Beside `unreachable`: it lives, kept all that it had to the deadline, and is known to refuse by saying nothing. */
  readonly silence?: 'refuses';
  /** Beside `unreachable`: it was reached, and is busy: asked again soon, and it has judged nothing. */
  readonly notNow?: 'yes';
  /** Beside `unreachable`: it was not signalled, because the process may be a stranger's. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP';
}

/** The process that a worker is, or why there is none that can be named. */
export type Daemon =
  | { readonly kind: 'found'; readonly process: ProcessInfo }
  | {
      readonly kind: 'dead' | 'unknown';
      /** In words why there is none. */
      readonly reason: string;
      /** What a person can do about it. */
      readonly hint?: string;
    };

export interface ResetOptions {
  readonly target: Target;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
}

export type Liveness = 'alive' | 'dead' | 'unknown';

/** How processes of a worker ended, by the record that its supervisor keeps. */
export interface RecordedEnds {
  /** Ends that nobody asked for: a crash, an unexpected exit code, a watchdog, a supervisor that gave up. */
  readonly abnormal: number;
  /** Ends that the supervisor was asked for, or records as success. */
  readonly clean: number;
  /** New runs of which the record does not say how the ones before ended. */
  readonly unrecorded: number;
  /** Where the record was read to; given to the next call. Bounded (500 characters). */
  readonly mark: string;
}

/** What a supervisor itself records of a worker that does not run: evidence of a failure, never of a stop. */
export interface SupervisorFailure {
  /** `yes`: the supervisor does not start it again by itself. */
  readonly hasGivenUp: 'yes' | 'no';
  /** Its record, with the limit that was reached. */
  readonly text: string;
  /** What a person types to start it again. */
  readonly command: string;
}

export interface Driver {
  readonly verdictClass: VerdictClass;
  /** Opens what the driver listens on; called once before the first cycle. Left out where nothing is to open. */
  open?(): Promise<void>;
  /**
   * Ids of the workers that exist just now, sorted; ids are stable between cycles.
   * @throws WritError WORKER_UNREACHABLE when nobody can say who they are, as in a directory that can't be read
   */
  members(): Promise<readonly string[]>;
  /** Notifies one worker and waits for its answer. Never throws for what a worker does. */
  reset(worker: string, options: ResetOptions): Promise<Answer>;
  /**
   * Ends one worker, starts it again, and waits until it is ready to serve; for what a running process cannot take
   * over, as its own configuration. Left out where the driver has no such verb. Never throws for what a worker does.
   * A process that is up again is `notified`: that it read this generation, only a probe or its own answer shows.
   */
  restart?: ((worker: string, options: ResetOptions) => Promise<Answer>) | undefined;
  /**
   * Whether one worker lives just now: a zombie does not. Left out where the driver cannot see it.
   */
  liveness?: ((worker: string) => Promise<Liveness>) | undefined;
  /**
   * What tells the process behind a worker from another one under the same name, as pid and start time: one that was
   * restarted has confirmed nothing. A connection of a process is named after a slash, as `4711@88/2`. Undefined when it
   * cannot be seen just now. Left out where it never can be.
   */
  identity?: ((worker: string) => Promise<string | undefined>) | undefined;
  /**
   * As `identity`, for counting how often a process ended: a process that connects again has proved nothing, and has not
   * ended. Left out where `identity` says this as well.
   */
  lifeIdentity?: ((worker: string) => Promise<string | undefined>) | undefined;
  /**
   * How processes of a worker ended since a mark that an earlier call returned; without a mark none are counted. Undefined
   * when the record cannot be read just now. Left out where no supervisor keeps one.
   */
  endsSince?: ((worker: string, mark: string | undefined) => Promise<RecordedEnds | undefined>) | undefined;
  /**
   * How a worker failed that does not run, by its supervisor's record. Undefined for one that runs, that somebody stopped, that
   * is about to be started, or of which nothing is recorded. Left out where no supervisor keeps a record.
   */
  failure?: ((worker: string) => Promise<SupervisorFailure | undefined>) | undefined;
  /**
   * Pid of the main process of a worker, for who looks at it from outside and touches nothing: under which user it runs,
   * what confines it. Undefined when it is not there. Left out where the driver cannot know it.
   */
  pid?: ((worker: string) => Promise<number | undefined>) | undefined;
  /**
   * The process of a worker, and why it cannot be named where that is so; for people who look at what would be signalled.
   * Left out where the driver does not look for processes.
   */
  process?: ((worker: string) => Promise<Daemon>) | undefined;
  /**
   * `yes`: no notification makes another process of a worker, so that one that appears right behind an answer has answered
   * nothing. Left out where a daemon may replace itself as it reloads.
   */
  readonly keepsProcess?: 'yes';
  /**
   * Workers come by themselves: in so many milliseconds, counted from `open` and 0 from then on, all that live have come.
   * Left out where a driver finds them.
   */
  mayComeForMs?(): number;
  /** Notified after every swap and at start: what a worker that connects later is to use. */
  activeChanged?(target: Target | undefined): void;
  /** Frees sockets; left out where there are none. */
  close?(): Promise<void>;
}

export interface DriverContext {
  /** Name of the worker group. */
  readonly group: string;
  /** `yes`: every bundle that the group uses is judged by a check before any worker reads it. Left out: no. */
  readonly checked?: 'yes' | 'no';
  readonly log: Logger;
  readonly clock: Clock;
  /** For what a driver makes on disk, as its socket. */
  readonly durable: DurableFs;
  /** /run/writ or its configured place: where the `native` driver binds its socket (workers/GROUP.sock). */
  readonly runDirectory: string;
  /** Which process a worker of the group is; left out: what the driver takes for it. */
  readonly process?: ProcessConfig;
  /** Where a driver finds programs of the system, as PATH has it; left out: the fixed places of run-command. */
  readonly programPath?: string;
  /**
   * Called when a worker answers outside a reset: one that connected between cycles, or one whose answer came
   * after its deadline. Never for an answer that reset() returns.
   * @param identity of the process that answered, as `identity` has it; left out where the driver cannot tell
   */
  readonly onLateAnswer?: (worker: string, generation: number, answer: Answer, identity?: string) => void;
}

/** One kind of driver: its key in `reset:`, the JSON Schemas of its options, and how to make one. */
export interface DriverKind {
  /** The key under `reset:` that names it, as `kresd`. */
  readonly name: string;
  /** JSON Schemas of the members it understands in `reset:`, its own key among them; `timeout` and `min` are common. */
  readonly properties: Readonly<Record<string, object>>;
  /** Members that must be there beside its own key. */
  readonly required: readonly string[];
  /** True where the driver knows its processes without `process`, as from a supervisor. */
  readonly knowsProcess?: boolean;
  /**
   * Makes the driver from options that the schema accepted. Must not block or open anything.
   * @throws WritError CONFIG_INVALID for what a schema cannot say
   */
  create(options: Readonly<Record<string, unknown>>, context: DriverContext): Driver;
}

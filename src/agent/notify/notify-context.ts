// The types of a notification: the target generation, the workers to notify, and the behavior that the caller selects.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Target } from '../../workers/contract/driver.js';
import type { NotifyVerb } from '../../workers/contract/notify-worker.js';
import type { WorkerGroup } from '../state/host.js';
import type { Member } from './worker-groups.js';
import type { VerbOf } from './worker-ledger.js';

/** The generation that workers must load. */
export interface NotifyTarget {
  readonly generation: number;
  /** Real path of the generation directory. */
  readonly path: string;
}

/** Which listed members have their liveness checked: only new and departed ones, or also those that answered (`all`). */
export type LivenessCheck = 'all' | 'departed';

export interface NotifyOptions {
  readonly target: Target;
  readonly clock: Clock;
  /** @returns a new id for each notification */
  readonly nextNotificationId: () => string;
  readonly signal?: AbortSignal;
  /** Keys of the workers to notify; absent: all workers. */
  readonly only?: ReadonlySet<string> | undefined;
  /** By group: why its loader reached no process. Its workers are not notified, because nothing new is loaded for them. */
  readonly unreached?: ReadonlyMap<string, string> | undefined;
  /** @returns true for a member that is left out and keeps the generation that it uses */
  readonly isSpared?: (group: WorkerGroup, member: Member) => boolean;
  /** Keys of workers to notify even if they are no longer members, because the last notification may have killed them. */
  readonly also?: ReadonlySet<string>;
  /** Absent: `reset` for every worker. */
  readonly verbOf?: VerbOf;
  /** Keys of the workers that were alive before the move; absent: liveness is read just before each notification. */
  readonly alive?: ReadonlySet<string>;
  /**
   * For a worker of a kind that refuses by silence, by its key: whether its silence is a refusal. Absent: it is not, because
   * the worker may already use this generation.
   */
  readonly isSilenceRefusal?: (key: string) => boolean;
  /** Repeat the notification of a busy worker for as long as its group waits (`reset.notNow`). Otherwise try once. */
  readonly retryDeferred?: boolean;
  /** Also start a dead worker if its verb is `restart`, because this host may have stopped it. */
  readonly restartDead?: boolean;
  /** Called before each notification. */
  readonly onNotify?: (key: string, verb: NotifyVerb) => void;
  /** Called before each step with the keys of its workers. @returns a callback for each result as it arrives */
  readonly onStep?: (keys: readonly string[]) => (result: WorkerResult) => void;
  /** Called after each step except the last one, with the results of workers that accepted. @throws WritError a refusal */
  readonly prove?: (group: WorkerGroup, results: readonly WorkerResult[]) => Promise<void>;
}

/** Differences between the notification of a move or restore and that of a reconcile; all are absent for a plain reconcile. */
export interface NotifyBehavior
  extends Pick<
    NotifyOptions,
    | 'isSpared'
    | 'also'
    | 'verbOf'
    | 'alive'
    | 'restartDead'
    | 'onNotify'
    | 'onStep'
    | 'isSilenceRefusal'
    | 'retryDeferred'
  > {
  /** Workers that join while others are notified get one notification after the last step. */
  readonly notifyNewcomers?: boolean;
  /** No probe runs between the steps of a rolling group; the caller probes all workers after the last step. */
  readonly skipStepProbes?: boolean;
}

export interface NotifyContext extends Pick<NotifyOptions, 'nextNotificationId' | 'only' | 'unreached'> {
  readonly groups: readonly WorkerGroup[];
  readonly target: NotifyTarget;
  /** The staging directory of the cycle, for scratch directories. */
  readonly staging: string;
  readonly signal: AbortSignal;
  readonly behavior?: NotifyBehavior;
}

export interface ReconcileOptions extends Pick<NotifyContext, 'signal' | 'nextNotificationId'> {
  /** Creates the staging directory on the first call: a reconcile without an action needs none. */
  readonly staging: () => string;
  /** Also notify pending workers before their backoff is over, because an operator requested it. */
  readonly ignoreBackoff: boolean;
  /** Groups to refresh; absent: all groups. */
  readonly groups?: readonly WorkerGroup[];
  /** Absent: `all`. */
  readonly livenessCheck?: LivenessCheck;
  /** Called when a worker or a probe refuses the active generation, after all other results are recorded. */
  readonly onRefused?: (refusal: WritError) => Promise<void>;
}

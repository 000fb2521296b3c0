// What it takes to notify the workers of one generation: the target, who is asked, and how. Types alone.
import type { WritError } from '../../core/errors.js';
import type { WorkerGroup } from '../state/host.js';
import type { SetsOptions } from './membership.js';
import type { NotifyOptions } from './notify-group.js';

/** The generation that workers are moved to. */
export interface NotifyTarget {
  readonly generation: number;
  /** Real path of the generation directory. */
  readonly path: string;
}

/** What a move asks of its notifying; a notification apart from it asks for nothing. */
export interface NotifyManner
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
    | 'notNow'
  > {
  /** `notified`: who appears while the others are notified is notified behind them, once. */
  readonly newcomers?: 'notified';
  /** `last`: nobody is asked between two steps of a rolling group, but all of them behind the last. */
  readonly proofs?: 'last';
}

export interface NotifyContext extends Pick<NotifyOptions, 'nextNotificationId' | 'only' | 'unreached'> {
  readonly groups: readonly WorkerGroup[];
  readonly target: NotifyTarget;
  /** The cycle's staging directory, for scratch directories. */
  readonly staging: string;
  readonly signal: AbortSignal;
  readonly manner?: NotifyManner;
}

export interface ReconcileOptions extends Pick<NotifyContext, 'signal' | 'nextNotificationId'> {
  /** Makes the directory for scratch when a probe needs it. */
  readonly staging: () => string;
  /** `all`: also those whose next try is later, since a person asked. */
  readonly who: 'all' | 'whose-turn-it-is';
  /** Groups whose sets are read again; all of them when it is left out. */
  readonly groups?: readonly WorkerGroup[];
  /** As readSets; `the-answered` when it is left out. */
  readonly doubt?: SetsOptions['doubt'];
  /** A worker, or a probe, refused what is active already. Called once everything else is noted. */
  readonly onRefused?: (refusal: WritError) => Promise<void>;
}

// What the ledger remembers of releases on this host: accepted, in their bake time, settled, taken back; and of the processes that
// use them. Owns shapes only: the meaning belongs to agent/settled.
import type { ErrorCode } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';

/** A release this host has accepted, newest last; the age rules need all of them above an offered one. */
export interface AcceptedRelease {
  readonly serial: number;
  readonly manifestDigest: Digest;
}

/** A release in its bake time: failures of the workers that use it are attributed to it. */
export interface Bake extends AcceptedRelease {
  /** Epoch milliseconds of the swap. */
  readonly startedAtMs: number;
  /** Milliseconds of the bake time in which an agent observed the workers. */
  readonly observedMs: number;
  /** Epoch milliseconds of the last observation. */
  readonly seenAtMs: number;
  /** Epoch milliseconds of the last observation at which no worker had taken the release; absent where one had from the start. */
  readonly untakenAtMs?: number;
  readonly bootId: string;
  /** Boots within the bake time that began without an orderly shutdown before them. */
  readonly abruptBoots?: number;
  /** Present once there is evidence of failure: this release never settles. */
  readonly failure?: BakeFailure;
  /** Present until the server has answered since the swap; absent where contact is not watched. */
  readonly contact?: BakeContact;
}

/** The attempts to reach the server since the swap: all of them have failed. */
export interface BakeContact {
  readonly failed: number;
  /** Epoch milliseconds of the last attempt. */
  readonly lastAtMs?: number;
  /** The last attempt before the swap had reached the server. */
  readonly hadContact: boolean;
  /** How often this release was activated again after it had lost contact. */
  readonly tries: number;
}

/** A release that was taken back because contact was lost after its swap. */
export interface LostContact extends AcceptedRelease {
  /** Epoch milliseconds of the restore. */
  readonly atMs: number;
  readonly hadContact: boolean;
  readonly tries: number;
  /** Epoch milliseconds of the last attempt since the restore. */
  readonly lastAtMs?: number;
  /**
   * `asking`: contact may still return with the release before. `away`: it did not, so the server was away. `returned`: the
   * release may become active again. `held`: contact returned with the release before, so this release is at fault.
   */
  readonly state: 'asking' | 'away' | 'returned' | 'held';
}

/** Which servers answered before the swap to a generation. */
export interface ContactBefore {
  readonly generation: number;
  readonly reached: readonly ('repository' | 'fleet')[];
}

export interface BakeFailure {
  readonly cause: Extract<ErrorCode, 'WORKER_DIED' | 'PROBE_FAILED' | 'WORKER_REFUSED' | 'CONTACT_LOST'>;
  readonly text: string;
  readonly atMs: number;
  /** Names of the worker groups that failed; empty where the whole host did. */
  readonly groups: readonly string[];
}

/** A release that outlived its bake time on this host. */
export interface SettledRelease extends AcceptedRelease {
  readonly atMs: number;
  /** False where no agent observed the bake time. */
  readonly isObserved: boolean;
  /** Generation that was active when it settled: the members of a `together` set that settled with it have the same one. */
  readonly generation: number;
}

/** A bundle of which no release has settled since the last one that did. */
export interface UnsettledBundle {
  /** Epoch milliseconds: when the first release after the last settled one became active. */
  readonly sinceMs: number;
  /** How many releases were taken back since then, and when the last one was. */
  readonly restores: number;
  readonly restoredAtMs?: number;
  /** How many releases became active since then without a wait, because they correct another one. */
  readonly corrections?: number;
  /** Those that were taken back, oldest first, at most 16. */
  readonly failed: readonly AcceptedRelease[];
}

/** The runs of one worker's process, as far as an agent observed them. */
export interface WorkerRuns {
  /** The present process; as in `workers`. */
  readonly process: string;
  /** Epoch milliseconds: since when this process was seen, and since when this worker is observed at all. */
  readonly sinceMs: number;
  readonly watchedSinceMs: number;
  readonly bootId: string;
  /** Where the record of the supervisor was last read to; the driver's own text. */
  readonly mark?: string;
  /** Oldest first, at most 64. */
  readonly ends: readonly ProcessEnd[];
  /** Of a worker that is gone: how its supervisor gave up, and the command that starts it. */
  readonly failure?: string;
  /** At the last look the present process, which has run since before the swap, had said "not now" to the release. */
  readonly isUntaken?: true;
}

export interface ProcessEnd {
  /** Epoch milliseconds: when the end was observed. */
  readonly atMs: number;
  readonly livedMs: number;
  /** By the supervisor's record; `unrecorded` where nothing says how the process ended. */
  readonly kind: 'abnormal' | 'clean' | 'unrecorded';
  /** The process had been notified by Writ, so that the notification may have ended it. */
  readonly wasNotified?: true;
  /** It happened within the bake time of a release, and says nothing about a later one. */
  readonly isAttributed?: true;
  /** The process ran before the swap, and was too busy to take the release: it ended with the one before. */
  readonly hadNotTaken?: true;
}

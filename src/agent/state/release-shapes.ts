// Types of the ledger for releases on this host (accepted, in their bake time, settled, restored from) and for the process
// runs of workers. agent/settled owns the rules.
import type { ErrorCode } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';

/** A release that this host accepted. Lists have the newest last; the rules of release age need all above the offered one. */
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
  /** Epoch milliseconds of the last observation without a worker that had loaded the release; absent if one had from the start. */
  readonly untakenAtMs?: number;
  /** Epoch milliseconds: since when no bake time has passed because no worker had loaded the release; absent if some passed later. */
  readonly untakenSinceMs?: number;
  readonly bootId: string;
  /** Boots within the bake time that began without an orderly shutdown before them. */
  readonly abruptBoots?: number;
  /** Present once there is evidence of failure: this release never settles. */
  readonly failure?: BakeFailure;
  /** Present until the server has answered after the swap; absent if the bundle does not require contact. */
  readonly contact?: BakeContact;
}

/** The failed attempts to reach the server since the swap. */
export interface BakeContact {
  readonly failed: number;
  /** Epoch milliseconds of the last attempt. */
  readonly lastAtMs?: number;
  /** Whether the last attempt before the swap reached the server. */
  readonly hadContact: boolean;
  /** How often this release was activated again after it lost contact. */
  readonly tries: number;
}

/** A release that an automatic rollback replaced, because contact was lost after its swap. */
export interface LostContact extends AcceptedRelease {
  /** Epoch milliseconds of the automatic rollback. */
  readonly atMs: number;
  readonly hadContact: boolean;
  readonly tries: number;
  /** Epoch milliseconds of the last attempt since then. */
  readonly lastAtMs?: number;
  /**
   * `asking`: contact may still return with the previous release. `away`: contact did not return, so the server was down.
   * `returned`: the release may become active again. `held`: contact returned with the previous release, so this one is at
   * fault.
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
  /** Names of the worker groups that failed; empty if the whole host failed. */
  readonly groups: readonly string[];
}

/** A release that passed its bake time on this host. */
export interface SettledRelease extends AcceptedRelease {
  readonly atMs: number;
  /** False if no agent observed the bake time. */
  readonly isObserved: boolean;
  /** Generation that was active when it settled: the members of a `together` set that settled with it have the same one. */
  readonly generation: number;
}

/** A bundle with releases after the last settled one that have not settled. */
export interface UnsettledBundle {
  /** Epoch milliseconds: when the first release after the last settled one became active. */
  readonly sinceMs: number;
  /** How many automatic rollbacks there were since then, and epoch milliseconds of the last one. */
  readonly restores: number;
  readonly restoredAtMs?: number;
  /** How many releases became active since then without a delay, because they correct another one. */
  readonly corrections?: number;
  /** The releases that failed, oldest first, at most 16. */
  readonly failed: readonly AcceptedRelease[];
}

/** The process runs of one worker that an agent observed. */
export interface WorkerRuns {
  /** Identity of the present process; as in `workers`. */
  readonly process: string;
  /** Epoch milliseconds: first observation of this process, and of this worker. */
  readonly sinceMs: number;
  readonly watchedSinceMs: number;
  readonly bootId: string;
  /**
   * Epoch milliseconds: a time without an observation, in which the process was replaced. The time from `watchedSinceMs` to it, and
   * the time after it, were observed.
   */
  readonly unobserved?: { readonly fromMs: number; readonly toMs: number };
  /** Position in the supervisor's record after the last read; only the driver interprets it. */
  readonly mark?: string;
  /**
   * The first observation that found the process gone: its time in epoch milliseconds, and for how many milliseconds the process
   * had run at most; absent while the process may run.
   */
  readonly gone?: { readonly atMs: number; readonly livedMs: number };
  /** Oldest first; at most 104 within bake times, and 64 others. */
  readonly ends: readonly ProcessEnd[];
  /** For a departed worker: why its supervisor stopped restarting it, and the command that starts it. */
  readonly failure?: string;
  /** At the last observation the present process had deferred the release; it has run since before the swap. */
  readonly isUntaken?: true;
}

export interface ProcessEnd {
  /** Epoch milliseconds: when the end was observed. */
  readonly atMs: number;
  readonly livedMs: number;
  /** From the supervisor's record; `unrecorded` if it has no entry. */
  readonly kind: 'abnormal' | 'clean' | 'unrecorded';
  /** Writ had notified the process, so the notification may have ended it. */
  readonly wasNotified?: true;
  /** The end counted within the bake time of a release, and is no evidence about a later one. */
  readonly isAttributed?: true;
  /** The process ran before the swap and deferred the release: it ended while it used the previous one. */
  readonly hadNotTaken?: true;
}

// The status report of a host, for `writ status` and status.json. The members are part of schema 1, which only gets new members.
// The protocol of the request is in control-protocol.
import type { SandboxMode } from '../config/config.js';
import type { Problem, Trigger, WorkerState } from '../cycle/cycle-report.js';
import type { Outcome } from '../cycle/sync-machine.js';
import type { ErrorCode } from '../error-codes.js';
import type { ProxyUse } from '../proxy-rules.js';
import type { BundleStatus, CommandObservation } from './bundle-status.js';
import type { FreshnessReport } from './freshness.js';
import type { UseKind } from './mount-table.js';
import type { DamageFound, ScrubCounts } from './scrub-state.js';

export type { BakeStatus, BakeWait, BundleStatus, CommandObservation } from './bundle-status.js';

export type AgentState = 'init' | 'run' | 'shutdown' | 'stop';

export interface WorkerStatus {
  readonly group: string;
  readonly worker: string;
  /** Generation that the worker should use; left out if none is active. */
  readonly wanted?: number;
  /** Generation for which the worker was last confirmed; left out if it never was. */
  readonly confirmed?: number;
  /** Generation of the last notification, with any result; left out if that did not reach the worker. */
  readonly notified?: number;
  /** `pending`: not started yet; it is notified when it appears. */
  readonly state: WorkerState | 'pending';
  readonly text: string;
  /** Epoch milliseconds: since when the worker is in this state. */
  readonly atMs: number;
  /** Id of the last notification; left out before the first. */
  readonly notificationId?: string;
  /** When the worker answered it; left out without an answer. */
  readonly notifiedAtMs?: number;
  /** When an answer or a probe last confirmed the worker; left out if none did. */
  readonly provenAtMs?: number;
  /** `false`: neither its process nor a repeated probe would show that this confirmation is not valid any more. */
  readonly observed?: false;
  /** Number of failed notifications, and epoch milliseconds of the next; left out if none is pending. */
  readonly tries?: number;
  readonly nextNotificationAtMs?: number;
  /** Epoch milliseconds: when the worker left its group; left out for a member. */
  readonly goneAtMs?: number;
  /** A more exact cause of an unreachable worker, if it is known. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP';
}

/** A worker group and its problems. */
export interface GroupStatus {
  readonly group: string;
  /** Number of members, of members that are confirmed for the active generation, and of required members. */
  readonly workers: number;
  readonly confirmed: number;
  readonly min: number;
  readonly findings: readonly {
    readonly level: 'critical' | 'warning';
    readonly code: ErrorCode;
    readonly text: string;
  }[];
}

export interface RefusalStatus {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  /** Error code, as CHECK_FAILED. */
  readonly code: string;
  readonly reason: string;
  readonly atMs: number;
  readonly retryAtMs: number;
}

/** A refusal as `writ refusals` lists it. */
export interface RememberedRefusal extends RefusalStatus {
  /** `standing`: the channel offers its release. `older`: its release is not tried any more. */
  readonly state: 'standing' | 'older';
  /** Number of attempts that were refused. */
  readonly tries: number;
  /** Bundles with releases that were refused together with it. */
  readonly refusedWith: readonly string[];
}

export interface HoldStatus {
  readonly bundle: string;
  readonly serial: number;
  readonly by: string;
  readonly atMs: number;
  readonly reason?: string;
}

/** A pause: no release is activated until it ends. */
export interface PauseStatus {
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
  /** Left out for a pause until `writ resume`. */
  readonly untilMs?: number;
}

/** A release with an activation delay, and the groups that cause it. */
export interface DelayedReleaseStatus {
  readonly bundle: string;
  readonly serial: number;
  readonly groups: readonly string[];
  readonly untilMs: number;
}

/** Bytes of the current downloads of all bundles together. */
export interface DownloadedBytes {
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface MirrorReport {
  readonly url: string;
  /** `used`: the last mirror that sent a file. `failed`: the last request failed. */
  readonly state: 'used' | 'failed' | 'idle';
  /** Error code of the last failure. */
  readonly code?: string;
  /** Epoch milliseconds of the first of the consecutive failures. */
  readonly sinceMs?: number;
}

/** A retained release that does not verify against the current keys. */
export interface UntrustedStatus {
  readonly bundle: string;
  readonly serial: number;
  readonly generation: number;
  /** True for a release in use, which is a critical problem. No rollback goes to the others. */
  readonly active: boolean;
  readonly reason: string;
}

/** A generation or tree that is retained only because of its user. */
export interface GenerationUserStatus {
  /** Left out for a tree that belongs to no generation. */
  readonly generation?: number;
  /** Present if only one tree is in use. */
  readonly bundle?: string;
  readonly what: UseKind;
  /** The mount point, or the path in use as the kernel names it; left out in status.json. */
  readonly path?: string;
  /** Left out for a mount of the host itself, and in status.json. */
  readonly pid?: number;
  readonly command?: string;
  /** Epoch milliseconds: since when it is not active any more. */
  readonly sinceMs: number;
}

/** The last scan of the policy on disk. */
export interface ScrubStatus {
  readonly atMs: number;
  readonly outcome: 'intact' | 'damaged' | 'repaired';
  /** Number of differences that the scan found. */
  readonly found: number;
  /** Damage that is not repaired; at most 20 entries. */
  readonly damage: readonly DamageFound[];
  readonly counts: ScrubCounts;
}

/** How commands are confined on this host, and which limits the kernel enforces. */
export interface SandboxStatus {
  readonly mode: SandboxMode;
  /** `missing`: not installed. `unusable`: the kernel or a container refuses it. `unknown`: not checked yet. */
  readonly state: 'on' | 'off' | 'missing' | 'unusable' | 'unknown';
  /** Why the sandbox is not on. */
  readonly reason?: string;
  /** After a failed trial: `refused`: commands do not run. `unconfined`: they run as the agent's user. */
  readonly withoutIt?: 'refused' | 'unconfined';
  /** The setting to change on the host, if the kernel names why the sandbox is not on. */
  readonly hint?: string;
  /** User of commands without a configured one: `nobody` or the agent's user. This and the next members require `on`. */
  readonly user?: 'nobody' | 'agent';
  readonly userNamespace?: 'yes' | 'no';
  /** Whether the memory limit applies to each process, or to all processes of a command together. */
  readonly memory?: 'each-process' | 'each-command';
  /** Whether the limit `processes` counts the processes of the command, or all of its user. */
  readonly processes?: 'each-command' | 'each-user';
  /** `filtered`: system calls to leave the namespaces, and those of another architecture, are refused. */
  readonly systemCalls?: 'filtered' | 'open';
}

/** The fleet server of this host, and the state of its reports. */
export interface FleetStatus {
  readonly url: string;
  /** `waiting`: an operator has not approved the host yet. */
  readonly state: 'enrolling' | 'waiting' | 'reporting';
  /** Id of this host's key in the fleet; left out before the enrolment. */
  readonly keyId?: string;
  /** When the server last stored a report. */
  readonly acknowledgedAtMs?: number;
  /** Interval of reports, as the server set it. */
  readonly everyMs?: number;
  /** Number of outcomes that the server has not stored yet. */
  readonly pending: number;
  /** The problem that prevents reports. */
  readonly problem?: Problem;
}

/** Lines of the agent's log that could not be written since it started. */
export interface LogLosses {
  readonly lines: number;
  /** System error code of the last loss, as ENOSPC. */
  readonly code?: string;
}

export interface StatusReport {
  readonly schema: 1;
  readonly type: 'status.result';
  /** Version of the agent. */
  readonly version: string;
  readonly host: string;
  /** `host.labels`; left out if there are none. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly atMs: number;
  /** `stop` in a report that a command made without a running agent. */
  readonly agent: AgentState;
  /** The last cycle; left out before the first. */
  readonly last?: {
    readonly cycle: string;
    readonly trigger: Trigger;
    readonly outcome: Outcome;
    readonly atMs: number;
  };
  /** True if every worker is confirmed for the active generation; false on a host without workers. */
  readonly confirmed: boolean;
  /** Left out if no generation is active. */
  readonly generation?: number;
  readonly activatedAtMs?: number;
  readonly bundles: readonly BundleStatus[];
  /** Left out where an agent runs, and where no command observes bake times. */
  readonly observation?: CommandObservation;
  readonly workers: readonly WorkerStatus[];
  /** In the order of the configuration; left out if there are none. */
  readonly groups?: readonly GroupStatus[];
  readonly freshness: FreshnessReport;
  /** Left out unless the clock is behind a signed time. */
  readonly clock?: {
    /** Greatest time that the repository signed; expiry is judged by it. */
    readonly floorMs: number;
    readonly behindMs: number;
  };
  readonly nextPollAtMs?: number;
  /** Left out without a download, and without an agent. */
  readonly downloading?: DownloadedBytes;
  /** In the order of the configuration; left out for a single mirror, and before the first request. */
  readonly mirrors?: readonly MirrorReport[];
  /** The metadata that this host trusts, in the order timestamp, snapshot, targets, root. */
  readonly trust: readonly {
    readonly role: string;
    readonly version: number;
    readonly expiresAtMs: number;
    /** Only for the timestamp, because no other role has this time. */
    readonly signedAtMs?: number;
  }[];
  readonly untrusted?: readonly UntrustedStatus[];
  /** Left out if nothing is retained for its users alone. */
  readonly held?: readonly GenerationUserStatus[];
  /** Left out before the first scan. */
  readonly scrub?: ScrubStatus;
  /** Left out before an agent has checked it. */
  readonly sandbox?: SandboxStatus;
  /** Refusals of releases that can still be tried. */
  readonly refusals: readonly RefusalStatus[];
  /** Number of recorded refusals of releases that are not tried any more; left out if there are none. */
  readonly olderRefusals?: number;
  readonly holds: readonly HoldStatus[];
  /** Left out without a pause. */
  readonly pause?: PauseStatus;
  /** Left out if no release is delayed. */
  readonly waiting?: readonly DelayedReleaseStatus[];
  /** Left out if `fleet` is not configured, and before an agent has read it. */
  readonly fleet?: FleetStatus;
  /** The proxies to repository and fleet; left out if no setting names a proxy. */
  readonly proxies?: readonly ProxyUse[];
  /** Left out if no line was lost, and without an agent. */
  readonly logLosses?: LogLosses;
  readonly problems: readonly Problem[];
}

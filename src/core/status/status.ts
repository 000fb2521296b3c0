// What `writ status` and status.json say of a host. Owns the shape; its members are a promise (additive within
// schema 1). Who asks and how is control-protocol's.
import type { SandboxMode } from '../config/config.js';
import type { Problem, Trigger, WorkerState } from '../cycle/cycle-report.js';
import type { Outcome } from '../cycle/sync-machine.js';
import type { ErrorCode } from '../error-codes.js';
import type { ProxyUse } from '../proxy-rules.js';
import type { BundleStatus } from './bundle-status.js';
import type { FreshnessReport } from './freshness.js';
import type { HoldKind } from './mount-table.js';
import type { DamageFound, ScrubCounts } from './scrub-state.js';

export type { BakeStatus, BakeWait, BundleStatus } from './bundle-status.js';

export type AgentState = 'init' | 'run' | 'shutdown' | 'stop';

export interface WorkerStatus {
  readonly group: string;
  readonly worker: string;
  /** Generation it should use; left out when none is active. */
  readonly wanted?: number;
  /** Generation it last proved; left out when it never did. */
  readonly confirmed?: number;
  /** Generation that it was last notified of, whatever it made of it; left out where the last notification did not reach it. */
  readonly notified?: number;
  /** `pending`: not up yet, notified when it appears. */
  readonly state: WorkerState | 'pending';
  readonly text: string;
  /** Since when it is in this state. */
  readonly atMs: number;
  /** Id of the last notification; left out when it was never notified. */
  readonly notificationId?: string;
  /** When that was answered; left out when it was not. */
  readonly notifiedAtMs?: number;
  /** When it last proved what it uses, by its answer or its probe; left out where it did not. */
  readonly provenAtMs?: number;
  /** `false`: neither its process nor a repeated probe would show that this proof is over. */
  readonly observed?: false;
  /** Notifications in vain, and when the next one comes, in epoch milliseconds; left out while nothing is pending. */
  readonly tries?: number;
  readonly nextNotificationAtMs?: number;
  /** Since when its set does not list it. */
  readonly goneAtMs?: number;
  /** Why it could not be reached, where more is known than that. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP';
}

/** A group of workers, and what is wrong with it. */
export interface GroupStatus {
  readonly group: string;
  /** How many workers are there, how many of them proved what is active, and how many there must be. */
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
  /** `standing`: its release is what the channel offers. `older`: it is not tried any more. */
  readonly state: 'standing' | 'older';
  /** How often it was refused. */
  readonly tries: number;
  /** Bundles whose releases were refused with it. */
  readonly refusedWith: readonly string[];
}

export interface HoldStatus {
  readonly bundle: string;
  readonly serial: number;
  readonly by: string;
  readonly atMs: number;
  readonly reason?: string;
}

/** Nothing is activated until it ends. */
export interface PauseStatus {
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
  /** Left out: until `writ resume`. */
  readonly untilMs?: number;
}

/** A release that a worker group keeps waiting. */
export interface WaitStatus {
  readonly bundle: string;
  readonly serial: number;
  readonly groups: readonly string[];
  readonly untilMs: number;
}

/** What is under way from the server just now, for all bundles together. */
export interface Downloading {
  readonly doneBytes: number;
  readonly totalBytes: number;
}

export interface MirrorReport {
  readonly url: string;
  /** `used`: the last one that something came from. `failed`: when it was last asked. */
  readonly state: 'used' | 'failed' | 'idle';
  /** Error code of the last failure. */
  readonly code?: string;
  /** Epoch milliseconds: since when it fails. */
  readonly sinceMs?: number;
}

/** A kept release that keys of today no longer vouch for. */
export interface UntrustedStatus {
  readonly bundle: string;
  readonly serial: number;
  readonly generation: number;
  /** In use now: an alarm. The others are only never rolled back to. */
  readonly active: boolean;
  readonly reason: string;
}

/** What collection would have removed, did nobody hold it. */
export interface HeldStatus {
  /** Left out for a tree that no generation has. */
  readonly generation?: number;
  /** Where one tree of it is held. */
  readonly bundle?: string;
  readonly what: HoldKind;
  /** Where it is mounted, or which part of it is held, as the kernel names it; left out in status.json. */
  readonly path?: string;
  /** Left out for a mount of the host itself, and in status.json. */
  readonly pid?: number;
  readonly command?: string;
  /** Epoch milliseconds: since when it is not current any more. */
  readonly sinceMs: number;
}

/** The last look over the policy on disk. */
export interface ScrubStatus {
  readonly atMs: number;
  readonly outcome: 'intact' | 'damaged' | 'repaired';
  /** How many damaged things that look found. */
  readonly found: number;
  /** What is damaged still; at most 20. */
  readonly damage: readonly DamageFound[];
  readonly counts: ScrubCounts;
}

/** How commands are confined on this host, and which bounds are really kept. */
export interface SandboxStatus {
  readonly mode: SandboxMode;
  /** `missing`: not installed. `unusable`: the kernel or a container refuses it. `unknown`: not looked for yet. */
  readonly state: 'on' | 'off' | 'missing' | 'unusable' | 'unknown';
  /** Why it is not on. */
  readonly reason?: string;
  /** Where a trial failed: whether commands do not run, or run as the agent. */
  readonly withoutIt?: 'refused' | 'unconfined';
  /** What to change on the host, where the kernel says why it is not on. */
  readonly hint?: string;
  /** Who commands are, where they do not say: nobody, or the agent's own user. The next members are there when it is on. */
  readonly user?: 'nobody' | 'agent';
  readonly userNamespace?: 'yes' | 'no';
  /** Each process for itself has the bound, or all of a command together. */
  readonly memory?: 'each-process' | 'each-command';
  /** What `processes` counts: those of the command, or all of its user. */
  readonly processes?: 'each-command' | 'each-user';
  /** Whether the system calls by which a command leaves its namespaces are refused, and those of another architecture. */
  readonly systemCalls?: 'filtered' | 'open';
}

/** What is known of the fleet server that this host reports to. */
export interface FleetStatus {
  readonly url: string;
  /** `waiting`: a person approves the host first. */
  readonly state: 'enrolling' | 'waiting' | 'reporting';
  /** By which the fleet knows this host; left out before it has enrolled. */
  readonly keyId?: string;
  /** When a report was last stored there. */
  readonly acknowledgedAtMs?: number;
  /** Time between two reports, as the server granted it. */
  readonly everyMs?: number;
  /** Outcomes that no server has stored yet. */
  readonly pending: number;
  /** What stops it. */
  readonly problem?: Problem;
}

/** Lines of the agent's log that could not be written since it started. */
export interface LogLosses {
  readonly lines: number;
  /** Error code of the system for the last of them, as ENOSPC. */
  readonly code?: string;
}

export interface StatusReport {
  readonly schema: 1;
  readonly type: 'status.result';
  /** Version of the agent. */
  readonly version: string;
  readonly host: string;
  /** `host.labels`; left out where there are none. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly atMs: number;
  /** `stop` in a report that was read without a running agent. */
  readonly agent: AgentState;
  /** The last cycle; left out before the first. */
  readonly last?: {
    readonly cycle: string;
    readonly trigger: Trigger;
    readonly outcome: Outcome;
    readonly atMs: number;
  };
  /** Somebody is there, and everybody proved the active generation; false where there is nobody to prove it. */
  readonly confirmed: boolean;
  /** Left out when nothing is active. */
  readonly generation?: number;
  readonly activatedAtMs?: number;
  readonly bundles: readonly BundleStatus[];
  readonly workers: readonly WorkerStatus[];
  /** In the order of the configuration; left out where there are none. */
  readonly groups?: readonly GroupStatus[];
  readonly freshness: FreshnessReport;
  /** Left out while the clock of this host is right, or nothing signed tells. */
  readonly clock?: {
    /** Greatest time that the repository has signed; it is used for expiry. */
    readonly floorMs: number;
    readonly behindMs: number;
  };
  readonly nextPollAtMs?: number;
  /** Left out while nothing is downloaded, and where no agent answers. */
  readonly downloading?: Downloading;
  /** In the order of the configuration; left out where there is one, or none was asked yet. */
  readonly mirrors?: readonly MirrorReport[];
  /** The metadata this host trusts, in the order timestamp, snapshot, targets, root. */
  readonly trust: readonly {
    readonly role: string;
    readonly version: number;
    readonly expiresAtMs: number;
    /** Where the metadata says so: the timestamp's. */
    readonly signedAtMs?: number;
  }[];
  readonly untrusted?: readonly UntrustedStatus[];
  /** Left out when nothing is kept for its holders alone. */
  readonly held?: readonly HeldStatus[];
  /** Left out before the first look. */
  readonly scrub?: ScrubStatus;
  /** Left out where no agent has looked. */
  readonly sandbox?: SandboxStatus;
  /** Of releases that could be tried still: the others are history. */
  readonly refusals: readonly RefusalStatus[];
  /** How many refusals are remembered of releases that are tried no more; left out where there are none. */
  readonly olderRefusals?: number;
  readonly holds: readonly HoldStatus[];
  /** Left out while nothing is paused. */
  readonly pause?: PauseStatus;
  /** Left out while nothing waits. */
  readonly waiting?: readonly WaitStatus[];
  /** Left out where `fleet` is not configured, and where no agent has looked. */
  readonly fleet?: FleetStatus;
  /** How the process reaches repository and fleet; left out where nothing names a proxy. */
  readonly proxies?: readonly ProxyUse[];
  /** Left out while nothing was lost, and where no agent runs. */
  readonly logLosses?: LogLosses;
  readonly problems: readonly Problem[];
}

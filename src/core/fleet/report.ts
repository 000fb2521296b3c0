// The host report: its type and its bounds. It is an allow-list, so that a new member of the status report is not sent until it is
// added here. A report contains no path, no text of a worker and no line of policy unless `fleet.detail` allows it. Members are only
// added within schema 1.
import type { Trigger } from '../cycle/cycle-report.js';
import type { Outcome } from '../cycle/sync-machine.js';
import type { AgentState } from '../status/status.js';

/** The part of a refusal that a report contains: the code; also the first line of the output; also the whole output. */
export type ReportDetail = 'codes' | 'line' | 'full';

export interface FleetReport {
  readonly schema: 1;
  readonly type: 'fleet.report';
  /** Version of Writ. */
  readonly version: string;
  /** `host.id`: an attribute. The key identifies the host. */
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Random id of this installation. */
  readonly installId: string;
  /** Digest of the kernel's boot id, hex. Two values that alternate under one key show two machines. */
  readonly bootId: string;
  /** Epoch milliseconds by the clock of the host. The server records and shows it, and decides nothing by it. */
  readonly atMs: number;
  /** Time until the next keepalive. */
  readonly everyMs: number;
  /**
   * `stop`: the last report of an agent that announces its end. `pull`: no agent runs, and a timer starts `writ pull` on this host.
   */
  readonly agent: AgentState | 'pull';
  readonly health: 'ok' | 'warning' | 'critical';
  /** Codes of the problems, the worst first, at most 20. */
  readonly findings: readonly string[];
  /** Number of the active generation, which has no meaning on other hosts. */
  readonly generation?: number;
  /** The root that this host trusts; undefined before the first contact. */
  readonly root?: { readonly version: number; readonly sha256: string };
  readonly trust: readonly {
    readonly role: string;
    readonly version: number;
    readonly expiresAtMs: number;
  }[];
  readonly freshness: string;
  readonly bundles: readonly BundleReport[];
  readonly groups: readonly GroupReport[];
  /** Outcomes that the server has not acknowledged yet, the oldest first, at most 100. */
  readonly outcomes: readonly OutcomeReport[];
}

/** Whether the workers confirmed the active release. `notified`: no worker there can confirm. */
export type ActiveState = 'confirmed' | 'notified' | 'unconfirmed';

/**
 * State of the active release in its bake time. `none`: no bake time is configured. `unobserved`: the release settled, and no agent
 * ran during the bake time. `failed`: the release failed, and nothing could be restored.
 */
export type BakeState = (typeof bakeStates)[number];

export const bakeStates = ['baking', 'settled', 'unobserved', 'none', 'failed'] as const;

/** Why the offered release is not active. */
export type OfferedState = (typeof offeredStates)[number];

export const offeredStates = ['refused', 'rolled-back', 'deferred', 'failed'] as const;

/** @returns whether the text names a reason why an offered release is not active */
export function isOfferedState(text: string): text is OfferedState {
  return (offeredStates as readonly string[]).includes(text);
}

export interface BundleReport {
  readonly bundle: string;
  readonly channel: string;
  readonly active?: {
    readonly serial: number;
    /** Digest of its manifest, hex. It identifies the release, because serials repeat across repositories. */
    readonly manifest: string;
    readonly sinceMs: number;
    readonly state: ActiveState;
    /** Undefined from versions without a bake time. */
    readonly bake?: BakeState;
  };
  /** Undefined while the offered release is active. */
  readonly offered?: {
    readonly serial: number;
    readonly state: OfferedState;
    readonly code: string;
    readonly atMs: number;
    /** At most 200 characters; requires `detail: line` or `full`. */
    readonly line?: string;
    /** At most 4 kB; requires `detail: full`. */
    readonly output?: string;
  };
}

export interface GroupReport {
  readonly group: string;
  readonly workers: number;
  readonly confirmed: number;
  readonly min: number;
}

/** The outcome of a cycle that changed or refused a release. */
export interface OutcomeReport {
  /** Number of the outcome on this host; increases by one. */
  readonly n: number;
  readonly trigger: Trigger;
  readonly outcome: Outcome;
  /** Undefined if the cycle succeeded. */
  readonly code?: string;
  readonly atMs: number;
  readonly bundles: readonly { readonly bundle: string; readonly channel: string; readonly serial: number }[];
}

/** The request that a host sends once. Afterwards its key identifies it. */
export interface EnrolRequest {
  readonly schema: 1;
  readonly type: 'fleet.enrol';
  readonly token: string;
  /** Raw Ed25519 key, base64. */
  readonly publicKey: string;
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly installId: string;
  /** The server retires the host when it announces its end, or after it was silent for 24 h. */
  readonly ephemeral?: true;
  /** This key replaces a silent key of the same name. */
  readonly replaces?: true;
}

export interface EnrolAnswer {
  readonly fleet: string;
  readonly keyId: string;
  /** `waiting`: an operator must approve the host first. */
  readonly state: 'accepted' | 'waiting';
}

export interface ReportAnswer {
  /** Granted interval of reports, see longestGrantMs. */
  readonly everyMs: number;
  /** Number of the last outcome that the server stored. */
  readonly outcomes: number;
}

/** Body of a response 409: the counter was not above the last one. */
export interface CounterChallenge {
  readonly counter: number;
  /** The next request signs it together with the counter. It is valid once. */
  readonly nonce: string;
}

/**
 * @returns the longest interval that the server may grant: ten times the requested one and at most an hour, but never less than the
 *   requested one
 */
export function longestGrantMs(askedMs: number): number {
  return Math.max(askedMs, Math.min(askedMs * 10, 3_600_000));
}

/** @returns whether the host activates no release until an operator resumes */
export function isBlocked({ findings }: Pick<FleetReport, 'findings'>): boolean {
  return findings.includes('ACTIVATION_BLOCKED');
}

/** Bounds of a host report. The server rejects a report that exceeds one of them. */
export const fleetBounds = {
  maxReportBytes: 262_144,
  maxLabels: 64,
  maxBundles: 1000,
  maxGroups: 256,
  maxOutcomes: 100,
  maxFindings: 20,
  maxNameLength: 255,
  maxLineLength: 200,
  maxOutputBytes: 4096,
  /** Nesting depth of objects and arrays, also in unknown members. */
  maxDepth: 32,
} as const;

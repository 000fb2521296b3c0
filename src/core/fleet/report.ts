// What a host says of itself to a fleet server: the shape of one report, and its bounds. Made by allow-list: what the
// status gains is not sent until it is named here. Never holds a path, a worker's text or a line of policy unless
// `fleet.detail` asks for it. Members are a promise (additive within schema 1).
import type { Trigger } from '../cycle/cycle-report.js';
import type { Outcome } from '../cycle/sync-machine.js';
import type { AgentState } from '../status/status.js';

/** How much a report says of why something was refused: the code; its first line too; its whole output too. */
export type ReportDetail = 'codes' | 'line' | 'full';

export interface FleetReport {
  readonly schema: 1;
  readonly type: 'fleet.report';
  /** Version of Writ. */
  readonly version: string;
  /** `host.id`: an attribute, not who it is. */
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Random, of this installation. */
  readonly installId: string;
  /** Digest of the kernel's boot id, hex: two that alternate under one key are two machines. */
  readonly bootId: string;
  /** By this host's clock, epoch milliseconds: recorded and shown, never believed. */
  readonly atMs: number;
  /** How long until the next report that nothing new asks for. */
  readonly everyMs: number;
  /** `stop`: the last word of an agent that ended in order. `pull`: none runs; this host lives by pulls that something starts. */
  readonly agent: AgentState | 'pull';
  readonly health: 'ok' | 'warning' | 'critical';
  /** Codes of what is wrong, the worst first; at most 20. */
  readonly findings: readonly string[];
  /** Active generation: a number of this host alone. */
  readonly generation?: number;
  /** The root that this host trusts; left out before the first contact. */
  readonly root?: { readonly version: number; readonly sha256: string };
  readonly trust: readonly {
    readonly role: string;
    readonly version: number;
    readonly expiresAtMs: number;
  }[];
  readonly freshness: string;
  readonly bundles: readonly BundleReport[];
  readonly groups: readonly GroupReport[];
  /** Those that no server has acknowledged, the oldest first; at most 100. */
  readonly outcomes: readonly OutcomeReport[];
}

/** How far it is proven that the active release is in use. `notified`: nobody there can confirm. */
export type ActiveState = 'confirmed' | 'notified' | 'unconfirmed';

/**
 * Where the active release stands in its bake time. `none`: it has none. `unobserved`: it settled, and no agent observed its
 * bake time. `failed`: it failed, and nothing could be restored.
 */
export type BakeState = (typeof bakeStates)[number];

export const bakeStates = ['baking', 'settled', 'unobserved', 'none', 'failed'] as const;

/** Why what the channel offers is not active. */
export type OfferedState = (typeof offeredStates)[number];

export const offeredStates = ['refused', 'rolled-back', 'deferred', 'failed'] as const;

export function isOfferedState(text: string): text is OfferedState {
  return (offeredStates as readonly string[]).includes(text);
}

export interface BundleReport {
  readonly bundle: string;
  readonly channel: string;
  readonly active?: {
    readonly serial: number;
    /** Digest of its manifest, hex: serials repeat across repositories. */
    readonly manifest: string;
    readonly sinceMs: number;
    readonly state: ActiveState;
    /** Left out by versions without a bake time. */
    readonly bake?: BakeState;
  };
  /** Left out while what is offered is active. */
  readonly offered?: {
    readonly serial: number;
    readonly state: OfferedState;
    readonly code: string;
    readonly atMs: number;
    /** At most 200 characters; with `detail: line` or `full`. */
    readonly line?: string;
    /** At most 4 kB; with `detail: full`. */
    readonly output?: string;
  };
}

export interface GroupReport {
  readonly group: string;
  readonly workers: number;
  readonly confirmed: number;
  readonly min: number;
}

/** How a cycle that changed or refused something ended. */
export interface OutcomeReport {
  /** Grows by one on this host. */
  readonly n: number;
  readonly trigger: Trigger;
  readonly outcome: Outcome;
  /** Left out where all went well. */
  readonly code?: string;
  readonly atMs: number;
  readonly bundles: readonly { readonly bundle: string; readonly channel: string; readonly serial: number }[];
}

/** What a host asks once, to be known from then on by its key. */
export interface EnrolRequest {
  readonly schema: 1;
  readonly type: 'fleet.enrol';
  readonly token: string;
  /** Raw Ed25519 key, base64. */
  readonly publicKey: string;
  readonly host: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly installId: string;
  /** Retired at an orderly stop, or after 24 h of silence. */
  readonly ephemeral?: true;
  /** Supersede the silent key of the same name. */
  readonly replaces?: true;
}

export interface EnrolAnswer {
  readonly fleet: string;
  readonly keyId: string;
  /** `waiting`: a person approves it first. */
  readonly state: 'accepted' | 'waiting';
}

export interface ReportAnswer {
  /** Granted interval: at least what was asked, at most 10 times that and an hour. */
  readonly everyMs: number;
  /** Number of the last outcome that is stored. */
  readonly outcomes: number;
}

/** 409: the counter was not above the last one. */
export interface CounterChallenge {
  readonly counter: number;
  /** Signed beside the counter, once. */
  readonly nonce: string;
}

/** The longest interval that may be granted: ten times what was asked and an hour at most, and never less than what was asked. */
export function longestGrantMs(askedMs: number): number {
  return Math.max(askedMs, Math.min(askedMs * 10, 3_600_000));
}

/** @returns whether the host activates nothing any more, until a person resumes */
export function isBlocked({ findings }: Pick<FleetReport, 'findings'>): boolean {
  return findings.includes('ACTIVATION_BLOCKED');
}

/** Bounds of what a host may send; a report beyond them is refused whole. */
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
  /** Of objects and lists in one another, also in members that are not known. */
  maxDepth: 32,
} as const;

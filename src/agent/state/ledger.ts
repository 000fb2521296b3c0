// What outlives a cycle: numbers never used again, serials accepted, holds, what each worker is to use. Written before the
// act that it protects. Owns the shape; each member belongs to the section of one other file, which alone changes it. Holds
// no policy and no trust.

import type { Problem } from '../../core/cycle/cycle-report.js';
import type { ErrorCode } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';
import type { MissedRelease } from '../../core/status/missed-release.js';
import type { ScrubState } from '../../core/status/scrub-state.js';
import type { CrashCount, ReleaseDigests } from './crash-rules.js';
import type {
  AcceptedRelease,
  Bake,
  ContactBefore,
  LostContact,
  SettledRelease,
  UnsettledBundle,
  WorkerRuns,
} from './release-shapes.js';

export type {
  AcceptedRelease,
  Bake,
  BakeContact,
  BakeFailure,
  ContactBefore,
  LostContact,
  ProcessEnd,
  SettledRelease,
  UnsettledBundle,
  WorkerRuns,
} from './release-shapes.js';

/** A rollback keeps this release out until a newer serial, `writ resume` or `writ pull --force`. */
export interface Hold {
  readonly bundle: string;
  readonly serial: number;
  readonly manifestDigest: Digest;
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
  /** A rollback by force: what became active may be withdrawn, and stays. */
  readonly isForced?: true;
}

/** What one worker is to use, and what it last said. */
export interface WorkerLedger {
  readonly wanted: number;
  readonly confirmed?: number;
  /** The generation that it last took, by whatever answer; left out in ledgers of older versions. */
  readonly accepted?: number;
  readonly state: 'confirmed' | 'notified' | 'refused' | 'unreachable' | 'pending';
  readonly text: string;
  readonly atMs: number;
  /** The process that answered; another one under the same name has confirmed nothing. */
  readonly process?: string;
  /** It was not there, or was another process, when the others were notified: what it uses is not known. */
  readonly appeared?: true;
  /** It may use a generation that only a restart takes it from: so it is notified until it answers. */
  readonly owed?: 'restart';
  /** Id of the last notification, and when it ended. */
  readonly notificationId?: string;
  readonly notifiedAtMs?: number;
  /** When a process was taken for what this notification had made; left out where none was. */
  readonly replacedAtMs?: number;
  /** When it was another process soon after it had proved a generation, and how often in a row. */
  readonly soonReplacedAtMs?: number;
  readonly soonReplacements?: number;
  /** Whether its process was seen alive when it could not be reached. */
  readonly lives?: 'yes' | 'no';
  /** Since when it has said "not now" to what it is to use, each time it was asked. */
  readonly notNowSinceMs?: number;
  /** Why it could not be reached, where more is known than that. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP';
  /** Notifications in vain. */
  readonly tries?: number;
  /** Since when its set does not list it. */
  readonly goneAtMs?: number;
  /** What its probe said when it was asked again; of the wanted generation alone. */
  readonly probed?: ProbeCounts;
  /** Of a worker that a way back notified; it is `notified` until a second right answer of its probe. */
  readonly secondProbe?: SecondProbe;
}

export interface SecondProbe {
  /** Epoch milliseconds from which an answer counts. */
  readonly atMs: number;
  /** Wrong answers since then. */
  readonly wrong: number;
}

export interface ProbeCounts {
  /** Wrong answers in a row, and the last of them. */
  readonly wrong: number;
  readonly text?: string;
  /** Epoch milliseconds of the last wrong answer that counted. */
  readonly wrongAtMs?: number;
  /** How the last try ended that gave no verdict. */
  readonly silence?: string;
  /** Notifications that wrong answers caused in this generation, and when the last became due. */
  readonly notices?: number;
  readonly noticeAtMs?: number;
}

/** Nobody could say who the workers of a group are. */
export interface UnreadSet {
  readonly text: string;
  readonly sinceMs: number;
}

/** Nothing is activated until it ends. */
export interface Pause {
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
  /** Left out: until `writ resume`. */
  readonly untilMs?: number;
}

/** A release that a worker group keeps waiting. */
export interface WaitingRelease {
  readonly serial: number;
  readonly manifestDigest: Digest;
  /** When the first release was seen that has waited since, and when this one was. */
  readonly sinceMs: number;
  readonly changedAtMs: number;
  readonly groups: readonly string[];
  /** Left out once it may be tried. */
  readonly untilMs?: number;
  /**
   * How often it was tried in vain, and how the last try ended: a command behind the swap gave no verdict, or said "not
   * now". Left out where it is the pace of a group that it waits for.
   */
  readonly vain?: {
    readonly tries: number;
    readonly code: ErrorCode;
    /** It is not tried again by itself: a newer release, `writ resume` or `--force` ends that. */
    readonly isHeld?: true;
  };
}

/** Policy was older than `maxStale`, and what was done about it. */
export interface StalePeriod {
  /** `over`: fresh again, and the command for that is due. */
  readonly phase: 'stale' | 'over';
  /** Since when it was too old. */
  readonly sinceMs: number;
  /** Why the server's answers were not accepted, when it began. */
  readonly code?: string;
  /** Boot in which the command for it succeeded. */
  readonly ranBootId?: string;
  /** It is a release that was overdue, and not the metadata. */
  readonly of?: 'release';
}

/** A release that the disk had no room for. */
export interface SpaceNeed {
  readonly serial: number;
  readonly unit: 'bytes' | 'inodes';
  /** With the margin. */
  readonly needed: number;
  readonly atMs: number;
}

interface LedgerMembers {
  readonly writ: 1;
  /** Never reused, those of rolled-back generations included. */
  readonly nextGeneration: number;
  /** Whole seconds; every new tree gets a later one, or BIND and others would skip its files. */
  readonly lastMtimeSeconds: number;
  readonly previous?: number;
  readonly lastKnownGood?: number;
  /** When each generation on disk stopped being current, epoch milliseconds: its grace begins there. */
  readonly retired?: Readonly<Record<string, number>>;
  /** By `bundle/channel`. */
  readonly accepted: Readonly<Record<string, readonly AcceptedRelease[]>>;
  /** Channel of each bundle at its last activation: another one permits a lower serial once. */
  readonly channels: Readonly<Record<string, string>>;
  readonly holds: readonly Hold[];
  readonly pause?: Pause;
  /** By bundle. */
  readonly waiting?: Readonly<Record<string, WaitingRelease>>;
  /** By bundle: when the release that is active became so; of one that is not there its record knows when it was staged. */
  readonly activatedAtMs?: Readonly<Record<string, number>>;
  /** By group, for those with `minInterval`: when it was last moved to another generation. */
  readonly movedAtMs?: Readonly<Record<string, number>>;
  /** By `group/worker`. */
  readonly workers: Readonly<Record<string, WorkerLedger>>;
  /** By group. */
  readonly unreadSets?: Readonly<Record<string, UnreadSet>>;
  /** Epoch milliseconds; a server that said Retry-After is left alone across restarts too. */
  readonly retryAfterUntilMs?: number;
  /** Boot id of the last full verification of the active trees. */
  readonly verifiedBootId?: string;
  /** Boot in which the loaders of all groups have run on what is active: what they made in /run ends with it. */
  readonly loadedBootId?: string;
  /** A loader put off what is active: all of them run again, though they have run in this boot. */
  readonly loadPending?: true;
  /** Names of the groups whose loader reached nobody: it runs before their workers are notified. */
  readonly unloaded?: readonly string[];
  /** By group: why its last canary reached nobody, though workers were there. */
  readonly unheardCanaries?: Readonly<Record<string, string>>;
  /** Cycle of the last move that reached its commit: its journal may outlive it when the disk fails. */
  readonly committedCycle?: string;
  /** The candidate that did not come to its end behind its swap. */
  readonly crashes?: CrashCount;
  readonly blocked?: Block;
  /** A command was confined on this host: under `auto` its lack is news. */
  readonly sandboxWorked?: true;
  readonly stale?: StalePeriod;
  /** By bundle: what is offered and could not be had. */
  readonly missed?: Readonly<Record<string, MissedRelease>>;
  /** What a start has to say once: kept until it is in the history. */
  readonly notices?: readonly Problem[];
  /** By bundle: not fetched again before the disk has so much. */
  readonly spaceNeeded?: Readonly<Record<string, SpaceNeed>>;
  /** Where the last move ended, by its commit or by its way back; `current` names nothing else. */
  readonly settled?: number;
  /** What each kept generation holds: directory of each tree by bundle, by generation. */
  readonly links?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The last look over the policy on disk. */
  readonly scrub?: ScrubState;
  /** By bundle: the active release while it is in its bake time. */
  readonly bakes?: Readonly<Record<string, Bake>>;
  /** By bundle, newest first, at most 3. Absent in ledgers that 0.1.0 left. */
  readonly settledReleases?: Readonly<Record<string, readonly SettledRelease[]>>;
  /** By bundle. */
  readonly unsettled?: Readonly<Record<string, UnsettledBundle>>;
  /** Of the last move: noted before its swap. */
  readonly contactBefore?: ContactBefore;
  /** By bundle: the newest release that lost contact, until a newer one is active. */
  readonly lostContacts?: Readonly<Record<string, LostContact>>;
  /** By `group/worker`. */
  readonly runs?: Readonly<Record<string, WorkerRuns>>;
}

/** Releases that no poll tries again; `writ resume`, `--force` or another release ends it. */
export interface Block {
  readonly reason: string;
  readonly atMs: number;
  readonly manifestDigests: readonly Digest[];
  /** The same by bundle, for two bundles may hold the same files; absent in ledgers of older versions. */
  readonly releases?: ReleaseDigests;
  /** `workers`: it ends by itself once no worker is pending, for a worker on the way back is all that brought it about. */
  readonly until?: 'workers';
}

/** Nothing at run time. A spread leaves private members out, so that a spread of a ledger is none: sections change it. */
declare class Sealed {
  private readonly sealed: true;
}

export type Ledger = LedgerMembers & Sealed;

/** Of a host that has none yet. */
export function emptyLedger(): Ledger {
  const none = { accepted: {}, channels: {}, holds: [], workers: {} };
  const members: LedgerMembers = { writ: 1, nextGeneration: 1, lastMtimeSeconds: 0, ...none };
  return seal(members);
}

/** A member that is undefined is taken out, where it may be; one that is left out stays as it is. */
type SectionPatch<Name extends keyof LedgerMembers> = {
  readonly [One in Name]?: LedgerMembers[One] | (object extends Pick<LedgerMembers, One> ? undefined : never);
};

/**
 * Declares the one owner of some members; what it returns stays in that file.
 * @returns a function that gives the ledger with a change to these members, and to no other
 */
export function ledgerSection<Name extends keyof LedgerMembers>(
  ...names: readonly Name[]
): (ledger: Ledger, patch: SectionPatch<Name>) => Ledger {
  return (ledger, patch) => {
    const own = Object.entries(patch).filter(([name]) => names.some((one) => one === name));
    const next = Object.entries({ ...ledger, ...Object.fromEntries(own) });
    return seal(Object.fromEntries(next.filter(([, value]) => value !== undefined)));
  };
}

function seal(members: object): Ledger {
  return members as Ledger;
}

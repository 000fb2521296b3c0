// The facts that a host remembers between cycles: used generation numbers, accepted serials, holds, the state of each worker.
// Each member is written before the operation that it protects, and has one owner: the file that declares it with
// `ledgerSection`. Contains neither policy nor trusted metadata. Member names are the format on disk.

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

/** A release that a rollback blocks until a newer serial is offered, or until `writ resume` or `writ pull --force`. */
export interface Hold {
  readonly bundle: string;
  readonly serial: number;
  readonly manifestDigest: Digest;
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
  /** The rollback was forced: the release that became active stays, even if it is withdrawn. */
  readonly isForced?: true;
}

/** The generation that one worker must use, and its last answer. */
export interface WorkerLedger {
  /** The generation that the worker must use. */
  readonly wanted: number;
  /** The last generation that the worker confirmed. */
  readonly confirmed?: number;
  /** The last generation that the worker accepted, confirmed or not; absent in ledgers of older versions. */
  readonly accepted?: number;
  readonly state: 'confirmed' | 'notified' | 'refused' | 'unreachable' | 'pending';
  readonly text: string;
  readonly atMs: number;
  /** The identity of the process that answered: another process of the same worker has not confirmed anything. */
  readonly process?: string;
  /** Writ had notified the process that this one replaced. */
  readonly followsNotified?: true;
  /** The worker was absent or another process when the others were notified, so its generation is unknown. */
  readonly appeared?: true;
  /** Pending action: the worker may use a generation that only a restart replaces, so it is notified until it answers. */
  readonly owed?: 'restart';
  /** Id of the last notification, and epoch milliseconds of its end. */
  readonly notificationId?: string;
  readonly notifiedAtMs?: number;
  /** Epoch milliseconds: when a new process was attributed to this notification; absent if none was. */
  readonly replacedAtMs?: number;
  /** Epoch milliseconds of the last replacement soon after a confirmation, and how many came in a row. */
  readonly soonReplacedAtMs?: number;
  readonly soonReplacements?: number;
  /** Whether its process was alive when the worker was unreachable; absent if unknown. */
  readonly lives?: 'yes' | 'no';
  /** Epoch milliseconds: since when every answer has been a deferral of the wanted generation. */
  readonly notNowSinceMs?: number;
  /** Why the worker was unreachable, if a reason is known. */
  readonly code?: 'PROCESS_UNKNOWN' | 'SUPERVISOR_GAVE_UP';
  /** Notifications without effect. */
  readonly tries?: number;
  /** Epoch milliseconds: since when it is not a member of its group. */
  readonly goneAtMs?: number;
  /** Results of its repeated probe; of the wanted generation only. */
  readonly probed?: ProbeCounts;
  /** For a worker that a restore notified: it stays `notified` until its probe succeeds a second time. */
  readonly secondProbe?: SecondProbe;
}

export interface SecondProbe {
  /** Epoch milliseconds: earlier results do not count. */
  readonly atMs: number;
  /** Failed probes since then. */
  readonly wrong: number;
}

export interface ProbeCounts {
  /** Failed probes in a row, and the text of the last one. */
  readonly wrong: number;
  readonly text?: string;
  /** Epoch milliseconds of the last failed probe that counted. */
  readonly wrongAtMs?: number;
  /** How the last attempt without a verdict ended. */
  readonly silence?: string;
  /** How many notifications failed probes caused in this generation, and when the last one became due. */
  readonly notices?: number;
  readonly noticeAtMs?: number;
}

/** The members of a group could not be listed. */
export interface UnreadSet {
  readonly text: string;
  readonly sinceMs: number;
}

/** An operator stopped all activations. */
export interface Pause {
  readonly by: string;
  readonly reason: string;
  readonly atMs: number;
  /** Epoch milliseconds; absent: until `writ resume`. */
  readonly untilMs?: number;
}

/** A release that a worker group delays. */
export interface WaitingRelease {
  readonly serial: number;
  readonly manifestDigest: Digest;
  /** Epoch milliseconds: since when releases of the bundle have waited, and when this one was first offered. */
  readonly sinceMs: number;
  readonly changedAtMs: number;
  readonly groups: readonly string[];
  /** Epoch milliseconds of the next attempt; absent if it may start at once. */
  readonly untilMs?: number;
  /**
   * Failed attempts, and the code of the last one: a command after the swap gave no verdict or a deferral. Absent if the
   * release waits for the activation delay of a group.
   */
  readonly vain?: {
    readonly tries: number;
    readonly code: ErrorCode;
    /** No poll tries it again: a newer release, `writ resume` or `--force` ends that. */
    readonly isHeld?: true;
  };
}

/** A time in which policy was older than `maxStale`, and the state of the commands `onStale` and `onFresh`. */
export interface StalePeriod {
  /** `over`: policy is fresh again, and the command `onFresh` is pending. */
  readonly phase: 'stale' | 'over';
  /** Epoch milliseconds: since when policy was too old. */
  readonly sinceMs: number;
  /** Why the answers of the server were rejected when the period began. */
  readonly code?: string;
  /** Boot id in which the command of this phase succeeded. */
  readonly ranBootId?: string;
  /** The release was too old, not the metadata. */
  readonly of?: 'release';
}

/** A release that did not fit on the disk. */
export interface SpaceNeed {
  readonly serial: number;
  readonly unit: 'bytes' | 'inodes';
  /** In `unit`, with the margin. */
  readonly needed: number;
  readonly atMs: number;
}

interface LedgerMembers {
  readonly writ: 1;
  /** A number is never reused, even after a rollback. */
  readonly nextGeneration: number;
  /** Epoch seconds. Every new tree gets a later mtime, because BIND and others skip files with an unchanged one. */
  readonly lastMtimeSeconds: number;
  readonly previous?: number;
  readonly lastKnownGood?: number;
  /** By generation: epoch milliseconds when it stopped being active. Its grace period begins then. */
  readonly retired?: Readonly<Record<string, number>>;
  /** By `bundle/channel`. */
  readonly accepted: Readonly<Record<string, readonly AcceptedRelease[]>>;
  /** Channel of each bundle at its last activation: a change of the channel permits a lower serial once. */
  readonly channels: Readonly<Record<string, string>>;
  readonly holds: readonly Hold[];
  readonly pause?: Pause;
  /** By bundle. */
  readonly waiting?: Readonly<Record<string, WaitingRelease>>;
  /** By bundle: epoch milliseconds when the active release became active; if absent, the record of its tree has the staging time. */
  readonly activatedAtMs?: Readonly<Record<string, number>>;
  /** By group with `minInterval`: epoch milliseconds of its last move to another generation. */
  readonly movedAtMs?: Readonly<Record<string, number>>;
  /** By `group/worker`. */
  readonly workers: Readonly<Record<string, WorkerLedger>>;
  /** By group. */
  readonly unreadSets?: Readonly<Record<string, UnreadSet>>;
  /** Epoch milliseconds from Retry-After of the server; stored, because a restart of the agent must respect it too. */
  readonly retryAfterUntilMs?: number;
  /** Boot id of the last full verification of the active trees. */
  readonly verifiedBootId?: string;
  /** Boot id in which all loaders ran on the active generation: their files in /run do not survive a boot. */
  readonly loadedBootId?: string;
  /** A loader deferred the active generation: all loaders run again, although they ran in this boot. */
  readonly loadPending?: true;
  /** Names of the groups with an unreachable loader: it runs again before their workers are notified. */
  readonly unloaded?: readonly string[];
  /** By group: why its last canary reached no worker, although the group had members. */
  readonly unheardCanaries?: Readonly<Record<string, string>>;
  /** Cycle of the last committed move: after a disk error its journal may still exist. */
  readonly committedCycle?: string;
  /** The last candidate that crashed after its swap. */
  readonly crashes?: CrashCount;
  readonly blocked?: ActivationBlock;
  /** A command was confined on this host before: in mode `auto` a missing sandbox is an error from then on. */
  readonly sandboxWorked?: true;
  readonly stale?: StalePeriod;
  /** By bundle: the offered release that could not be fetched. */
  readonly missed?: Readonly<Record<string, MissedRelease>>;
  /** Problems that a start reports once; kept until they are in the history. */
  readonly notices?: readonly Problem[];
  /** By bundle: the release is not fetched again before the disk has so much free space. */
  readonly spaceNeeded?: Readonly<Record<string, SpaceNeed>>;
  /** The generation after the last commit or restore; `current` must name it. */
  readonly settled?: number;
  /** By generation, then by bundle: the name of the tree's directory. For each retained generation. */
  readonly links?: Readonly<Record<string, Readonly<Record<string, string>>>>;
  /** The result of the last scrub. */
  readonly scrub?: ScrubState;
  /** By bundle: the active release while it is in its bake time. */
  readonly bakes?: Readonly<Record<string, Bake>>;
  /** By bundle, newest first, at most 3. Absent in ledgers that 0.1.0 left. */
  readonly settledReleases?: Readonly<Record<string, readonly SettledRelease[]>>;
  /** By bundle. */
  readonly unsettled?: Readonly<Record<string, UnsettledBundle>>;
  /** Of the last move; recorded before its swap. */
  readonly contactBefore?: ContactBefore;
  /** By bundle: the newest release that lost contact, until a newer one is active. */
  readonly lostContacts?: Readonly<Record<string, LostContact>>;
  /** By `group/worker`. */
  readonly runs?: Readonly<Record<string, WorkerRuns>>;
}

/** Releases that no poll activates after three crashes; `writ resume`, `--force` or another release ends the block. */
export interface ActivationBlock {
  readonly reason: string;
  readonly atMs: number;
  readonly manifestDigests: readonly Digest[];
  /** The same digests by bundle, because two bundles may have the same files; absent in ledgers of older versions. */
  readonly releases?: ReleaseDigests;
  /** `workers`: the block ends once no worker is pending, because only a worker that failed during the restore caused it. */
  readonly until?: 'workers';
}

/** Only a type. A spread drops private members, so a spread of a ledger is no Ledger: only `ledgerSection` changes one. */
declare class Sealed {
  private readonly sealed: true;
}

export type Ledger = LedgerMembers & Sealed;

/** @returns the ledger of a new host */
export function emptyLedger(): Ledger {
  const none = { accepted: {}, channels: {}, holds: [], workers: {} };
  const members: LedgerMembers = { writ: 1, nextGeneration: 1, lastMtimeSeconds: 0, ...none };
  return seal(members);
}

/** A member with the value undefined is removed, if it is optional; an absent member stays unchanged. */
type SectionPatch<Name extends keyof LedgerMembers> = {
  readonly [One in Name]?: LedgerMembers[One] | (object extends Pick<LedgerMembers, One> ? undefined : never);
};

/**
 * Declares the calling file as the owner of some members. The file must not export the result.
 * @returns a function that returns the ledger with a change to these members, and ignores all others
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

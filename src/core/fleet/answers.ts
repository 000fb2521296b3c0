// What a fleet server answers to people and programs: shapes only, the same over HTTP, in `--json` and on its page. Members
// are a promise (additive within schema 1). What of it a role may see is said beside the members that need more than `view`.
import type { HealthLevel } from '../status/host-health.js';
import type { PastHosts, ReleaseInterval } from './history-answers.js';
import type { ActiveState, BakeState, FleetReport, OfferedState, OutcomeReport } from './report.js';
import type { Judged, RepositoryView, SignedEntry, SignedRelease, Standing } from './signed-releases.js';

export const roles = ['view', 'detail', 'operate'] as const;
/** Each may what the one before may: `view` sees codes, `detail` also lines and outputs, `operate` also changes. */
export type Role = (typeof roles)[number];

/** What is wrong with the fleet, in one clause; the code is a word of its own, and no error. */
export interface FleetFinding {
  readonly level: Exclude<HealthLevel, 'ok'>;
  readonly code:
    | 'NO_HOSTS'
    | 'ROLE_EXPIRED'
    | 'WITHDRAWN_IN_USE'
    | 'BEHIND'
    | 'REPOSITORY_UNREAD'
    | 'REFUSED'
    | 'ROLLED_BACK'
    | 'BLOCKED'
    | 'HOST_CRITICAL'
    | 'CLONED'
    | 'SILENT'
    | 'UNCONFIRMED'
    | 'FAILED'
    | 'DEFERRED'
    | 'WAITING_FOR_APPROVAL'
    | 'ROLE_ENDS';
  readonly text: string;
  /** Filter that lists the hosts. */
  readonly where?: string;
}

/** Hosts that run one release, by how far that is proven. */
export interface ReleaseCount {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifest: string;
  readonly confirmed: number;
  readonly notified: number;
  readonly unconfirmed: number;
  /**
   * Reported that they have it, and are silent, ended in order, or share their key with a clone: in no number above; left out for
   * none, and by older servers.
   */
  readonly silent?: number;
  readonly stopped?: number;
  readonly cloned?: number;
  /** The first three by where it stands in its bake time; states that none reports are left out, as are hosts of older versions. */
  readonly bakes?: BakeCounts;
  /** `tail`: hosts are known to run a later serial of the same channel. */
  readonly place: 'newest' | 'tail';
  /** By what was signed; left out where the server reads no repository. */
  readonly standing?: Standing;
}

export type BakeCounts = Readonly<Partial<Record<BakeState, number>>>;

/** A repository as the server reads it. */
export interface RepositoryStatus extends Pick<RepositoryView, 'url' | 'failing' | 'roles'> {
  /** Left out where nothing was ever read. */
  readonly checkedAtMs?: number;
  /** What should be in use, at most 200 channels. */
  readonly releases: readonly Pick<SignedEntry, 'bundle' | 'channel' | 'serial' | 'revision' | 'seenAtMs'>[];
}

/** Hosts on which an offered release is not active, for one reason. */
export interface OfferGroup {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly state: OfferedState;
  readonly code: string;
  readonly hosts: number;
  /** Left out where no host is left to ask. */
  readonly firstAtMs?: number;
  /** First lines of what hosts said, the most frequent first, at most 5; of `detail`, where hosts send them. */
  readonly lines?: readonly string[];
}

export interface HostCounts {
  readonly accepted: number;
  readonly waiting: number;
  /** Ended in order, not heard since. */
  readonly stopped: number;
  readonly silent: number;
  /** Not heard for two of their intervals, as the fleet has not been listening for as long: perhaps silent. */
  readonly unjudged: number;
  /** Activate nothing until a person resumes. */
  readonly blocked: number;
  /** Report that they are critical, and are neither blocked, silent nor stopped; left out by older servers. */
  readonly critical?: number;
  readonly cloned: number;
  /** Plain OPAs, unsigned: in no other number. */
  readonly opa: number;
}

export interface FleetSummary {
  readonly schema: 1;
  readonly type: 'fleet.summary';
  readonly fleet: string;
  readonly atMs: number;
  readonly level: HealthLevel;
  readonly sentence: string;
  /** The worst first. */
  readonly findings: readonly FleetFinding[];
  readonly hosts: HostCounts;
  /** When hosts and roots were counted; releases and offers are of `atMs`. */
  readonly countedAtMs: number;
  /** `too-early`: more than half of the hosts that run are `unjudged`. What one host claims decides nothing. */
  readonly silence: 'judged' | 'too-early';
  readonly releases: readonly ReleaseCount[];
  readonly offers: readonly OfferGroup[];
  /** Hosts that report a channel and run no release of it; left out by older servers. */
  readonly idle?: readonly { readonly bundle: string; readonly channel: string; readonly hosts: number }[];
  /** First codes of critical hosts, the most frequent first, at most 3. */
  readonly criticalCodes?: readonly string[];
  readonly roots: readonly { readonly version: number; readonly digest: string; readonly hosts: number }[];
  readonly versions: readonly { readonly version: string; readonly hosts: number }[];
  /** Left out where the server reads none. */
  readonly repositories?: readonly RepositoryStatus[];
  /** As the hosts that were heard last know them. */
  readonly keys: readonly { readonly role: string; readonly version: number; readonly expiresAtMs: number }[];
}

/** What a summary is judged from. */
export type FleetFacts = Omit<FleetSummary, 'schema' | 'type' | 'level' | 'sentence' | 'findings'>;

export interface HostBundle {
  readonly bundle: string;
  readonly channel: string;
  readonly active?: {
    readonly serial: number;
    readonly state: ActiveState;
    readonly sinceMs: number;
    /** Left out for hosts of older versions. */
    readonly bake?: BakeState;
  };
  readonly offered?: {
    readonly serial: number;
    readonly state: OfferedState;
    readonly code: string;
    readonly atMs: number;
    /** Of `detail`. */
    readonly line?: string;
  };
  /** Of what is active: whether it should be; left out where nothing is, or the server reads no repository. */
  readonly signed?: Judged;
}

export interface HostLine {
  readonly key: string;
  readonly host: string;
  readonly kind: 'writ' | 'opa';
  readonly state: 'waiting' | 'accepted' | 'retired';
  readonly presence: 'heard' | 'silent' | 'stopped' | 'never';
  readonly health: string;
  readonly version: string;
  readonly root: number;
  readonly lastSeenMs: number;
  readonly skewMs: number;
  readonly cloned: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly bundles: readonly HostBundle[];
}

export interface HostsPage {
  readonly schema: 1;
  readonly type: 'fleet.hosts';
  readonly hosts: readonly HostLine[];
  /** Ask with it for those behind; left out on the last page. */
  readonly next?: string;
}

/** What a plain OPA states about a bundle in its status. The status is not signed. */
export interface OpaBundle {
  readonly name: string;
  /** Left out where no revision is active. */
  readonly revision?: string;
  /** OPA's own code of what went wrong, as `bundle_error`. */
  readonly code?: string;
  /** For `detail` only: the text quotes policy. */
  readonly message?: string;
}

export interface HostDetail extends HostLine {
  readonly schema: 1;
  readonly type: 'fleet.host';
  readonly enrolledAtMs: number;
  readonly everyMs: number;
  /** The last report; lines and outputs of `detail` only. Left out before the first. */
  readonly report?: FleetReport;
  /** Of an OPA alone, as its last status has them; left out by servers of older versions. */
  readonly opaBundles?: readonly OpaBundle[];
  /** The newest first, at most 100. */
  readonly outcomes: readonly {
    readonly n: number;
    readonly atMs: number;
    readonly trigger: string;
    readonly outcome: string;
    readonly code?: string;
    /** What it was about; left out by servers of older versions. */
    readonly bundles?: OutcomeReport['bundles'];
  }[];
  /** What it ran and refused, the newest first, at most 100; left out by servers of older versions. */
  readonly intervals?: readonly ReleaseInterval[];
  /** Keys of other hosts with this name, at most 20. */
  readonly namesakes: readonly string[];
}

export interface ReleaseReport {
  readonly schema: 1;
  readonly type: 'fleet.release';
  readonly releases: readonly ReleaseCount[];
  readonly offers: readonly OfferGroup[];
  /** What repositories have signed of it; left out where the server reads none. */
  readonly signed?: readonly SignedRelease[];
  /** There where no host runs it now. */
  readonly past?: PastHosts;
  /** How many hosts confirmed from when on, summed up, at most 100 points. */
  readonly curve: readonly { readonly atMs: number; readonly confirmed: number }[];
}

export interface LogPage {
  readonly schema: 1;
  readonly type: 'fleet.log';
  readonly entries: readonly {
    readonly id: number;
    readonly atMs: number;
    readonly who: string;
    readonly what: string;
    readonly subject: string;
    readonly detail: string;
  }[];
  /** Id to go on before; left out at the end. */
  readonly next?: number;
}

/** Hosts by what became of the release within its bake time. A host on which it has no bake time counts as settled. */
export interface WaitSettled {
  readonly confirmed: number;
  readonly notified: number;
  /** Part of the two: no agent observed the bake time. */
  readonly unobserved: number;
  /** Part of neither: it bakes, or failed and could not be taken back. */
  readonly baking: number;
  readonly failed: number;
  /** Part of neither: their version has no bake time. */
  readonly unknown: number;
}

/** What a wait is judged on, as of `atMs`. */
export interface WaitFacts {
  readonly schema: 1;
  readonly type: 'fleet.wait';
  readonly atMs: number;
  /** Hosts that count: not retired, not stopped, with this bundle and channel, enrolled by `since`. */
  readonly of: number;
  readonly confirmed: number;
  /** Nothing there can confirm. */
  readonly notified: number;
  /** Have it, and something there could confirm it and did not, or was not reached. */
  readonly unconfirmed: number;
  /** Reported that they have it, and are silent now: what they run is not known. In no number above. */
  readonly silent: number;
  /** Of the confirmed and of the notified hosts; left out by servers of older versions. */
  readonly settled?: WaitSettled;
  readonly refused: number;
  /** At most 20 of those that refused. */
  readonly refusedHosts: readonly { readonly host: string; readonly key: string; readonly code: string }[];
  /** Left out of `of` for their silence. */
  readonly excepted: number;
  /** Hosts that count and went by it, to a later serial of a repository in which one of them knows this release. */
  readonly later: number;
  /** The greatest serial of those. */
  readonly supersededBy?: number;
  /** Hosts that report that they have it, and share their key with a clone. In no number above; left out by servers of older versions. */
  readonly cloned?: number;
  /** Hosts that count and report another manifest with this serial: of another repository, or a false report. */
  readonly elsewhere: number;
  /** At most 20 of those; left out by servers of older versions. */
  readonly elsewhereHosts?: readonly { readonly host: string; readonly key: string }[];
  /** SHA-256 of the manifest of the counted release, hex: the signed one, else the one that most hosts report. */
  readonly manifest?: string;
  readonly withdrawn?: true;
  /** The repository has been read since the wait began, and has signed no such serial. */
  readonly absent?: true;
  /** That is signed for the channel now; there where signed metadata has decided what is said of this release. */
  readonly signedSerial?: number;
  /** When the reading began that found this release to be the one that is signed; there where one did. */
  readonly readAtMs?: number;
}

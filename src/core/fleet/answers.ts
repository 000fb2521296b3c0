// The responses of the fleet server to people and programs, as types: the same members over HTTP, with `--json` and on its pages.
// Members are only added within schema 1. A member that needs a higher role than `view` names that role in its comment.
import type { HealthLevel } from '../status/host-health.js';
import type { PastHosts, ReleaseInterval } from './history-answers.js';
import type { ActiveState, BakeState, FleetReport, OfferedState, OutcomeReport } from './report.js';
import type { HeadVerdict, RepositoryView, SignedEntry, SignedRelease, Standing } from './signed-releases.js';

export const roles = ['view', 'detail', 'operate'] as const;
/**
 * Each role includes the ones before it: `view` reads codes, `detail` also texts and outputs, `operate` may also change the fleet.
 */
export type Role = (typeof roles)[number];

/** A problem of the fleet. The code belongs to this list, not to the catalogue of errors; the text is one clause. */
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
  /** Filter that lists the affected hosts; undefined if no host is affected. */
  readonly where?: string;
}

/** Numbers of hosts that run one release, by the state of their confirmation. */
export interface ReleaseCount {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly manifest: string;
  readonly confirmed: number;
  readonly notified: number;
  readonly unconfirmed: number;
  /**
   * Hosts that reported it and are silent, stopped or cloned now; not in the numbers above. Undefined for 0, and from older servers.
   */
  readonly silent?: number;
  readonly stopped?: number;
  readonly cloned?: number;
  /** The three numbers above by the state of the bake time, without states of 0 hosts and without hosts of older versions. */
  readonly bakes?: BakeCounts;
  /** `tail`: some hosts run a later serial of the same channel. */
  readonly place: 'newest' | 'tail';
  /** Compared with the signed metadata; undefined if the server reads no repository. */
  readonly standing?: Standing;
}

export type BakeCounts = Readonly<Partial<Record<BakeState, number>>>;

/** The state of a repository that the server reads. */
export interface RepositoryStatus extends Pick<RepositoryView, 'url' | 'failing' | 'roles'> {
  /** Undefined if no reading succeeded yet. */
  readonly checkedAtMs?: number;
  /** The heads of at most 200 channels. */
  readonly releases: readonly Pick<SignedEntry, 'bundle' | 'channel' | 'serial' | 'revision' | 'seenAtMs'>[];
}

/** Number of hosts on which an offered release is not active, for one reason. */
export interface OfferGroup {
  readonly bundle: string;
  readonly channel: string;
  readonly serial: number;
  readonly state: OfferedState;
  readonly code: string;
  readonly hosts: number;
  /** Undefined if none of these hosts is left. */
  readonly firstAtMs?: number;
  /** First lines of the outputs, the most frequent first, at most 5. Requires `detail`, and hosts that send the lines. */
  readonly lines?: readonly string[];
}

export interface HostCounts {
  readonly accepted: number;
  readonly waiting: number;
  /** Announced their end, and have not reported since. */
  readonly stopped: number;
  readonly silent: number;
  /** Have not reported for two of their intervals, but the fleet server has not run for that long either: they may be silent. */
  readonly unjudged: number;
  /** Activate no release until an operator resumes. */
  readonly blocked: number;
  /** Report critical health, and are neither blocked, silent nor stopped. Undefined from older servers. */
  readonly critical?: number;
  readonly cloned: number;
  /** OPA processes that report without Writ and without a signature. No other number includes them. */
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
  /** When hosts and roots were counted. Releases and offers are of `atMs`. */
  readonly countedAtMs: number;
  /** `too-early`: more than half of the running hosts are `unjudged`. One host alone must not decide it. */
  readonly silence: 'judged' | 'too-early';
  readonly releases: readonly ReleaseCount[];
  readonly offers: readonly OfferGroup[];
  /** Hosts that report a channel and run no release of it. Undefined from older servers. */
  readonly idle?: readonly { readonly bundle: string; readonly channel: string; readonly hosts: number }[];
  /** The first problem code of each critical host, the most frequent first, at most 3. */
  readonly criticalCodes?: readonly string[];
  readonly roots: readonly { readonly version: number; readonly digest: string; readonly hosts: number }[];
  readonly versions: readonly { readonly version: string; readonly hosts: number }[];
  /** Undefined if the server reads no repository. */
  readonly repositories?: readonly RepositoryStatus[];
  /** The roles as the hosts with the latest reports know them. */
  readonly keys: readonly { readonly role: string; readonly version: number; readonly expiresAtMs: number }[];
}

/** The input of `summarize`. */
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
    /** Requires `detail`. */
    readonly line?: string;
  };
  /** Whether the active release should be in use. Undefined without an active release, and if the server reads no repository. */
  readonly signed?: HeadVerdict;
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
  /** Cursor of the next page; undefined on the last page. */
  readonly next?: string;
}

/** A bundle in the status of an OPA process without Writ. The status is not signed. */
export interface OpaBundle {
  readonly name: string;
  /** Undefined if no revision is active. */
  readonly revision?: string;
  /** The error code of OPA, as `bundle_error`. */
  readonly code?: string;
  /** Requires `detail`, because the text quotes policy. */
  readonly message?: string;
}

export interface HostDetail extends HostLine {
  readonly schema: 1;
  readonly type: 'fleet.host';
  readonly enrolledAtMs: number;
  readonly everyMs: number;
  /** The last report; undefined before the first one. Its lines and outputs require `detail`. */
  readonly report?: FleetReport;
  /** Bundles in the last status of an OPA process; undefined for other hosts, and from older servers. */
  readonly opaBundles?: readonly OpaBundle[];
  /** The newest first, at most 100. */
  readonly outcomes: readonly {
    readonly n: number;
    readonly atMs: number;
    readonly trigger: string;
    readonly outcome: string;
    readonly code?: string;
    /** The releases of this outcome. Undefined from older servers. */
    readonly bundles?: OutcomeReport['bundles'];
  }[];
  /** The releases that the host ran and refused, the newest first, at most 100. Undefined from older servers. */
  readonly intervals?: readonly ReleaseInterval[];
  /** Keys of other hosts with this name, at most 20. */
  readonly namesakes: readonly string[];
}

export interface ReleaseReport {
  readonly schema: 1;
  readonly type: 'fleet.release';
  readonly releases: readonly ReleaseCount[];
  readonly offers: readonly OfferGroup[];
  /** The release in the signed metadata of each repository. Undefined if the server reads no repository. */
  readonly signed?: readonly SignedRelease[];
  /** Present if no host runs the release now. */
  readonly past?: PastHosts;
  /** Cumulative number of hosts that had confirmed the release at each time, at most 100 points. */
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
  /** The next page has the entries before this id. Undefined on the last page. */
  readonly next?: number;
}

/** Numbers of hosts by the result of the bake time. A host without a bake time counts as settled. */
export interface WaitSettled {
  readonly confirmed: number;
  readonly notified: number;
  /** Included in `confirmed` and `notified`: no agent ran during the bake time. */
  readonly unobserved: number;
  /** Not included in these two: the bake time has not ended, or it failed and no release could be restored. */
  readonly baking: number;
  readonly failed: number;
  /** Not included in these two: the version of Writ on these hosts has no bake time. */
  readonly unknown: number;
}

/** The input of `judgeWait`, counted at `atMs`. */
export interface WaitFacts {
  readonly schema: 1;
  readonly type: 'fleet.wait';
  readonly atMs: number;
  /** Hosts that count: they have this bundle and channel, enrolled before `since`, and are neither retired nor stopped. */
  readonly of: number;
  readonly confirmed: number;
  /** Have the release, and no worker there can confirm it. */
  readonly notified: number;
  /** Have the release, and a worker that can confirm it has not done so, or was not reached. */
  readonly unconfirmed: number;
  /** Reported this release, and are silent now, so that their active release is not known. No number above includes them. */
  readonly silent: number;
  /** Results of the bake time on the confirmed and notified hosts. Undefined from older servers. */
  readonly settled?: WaitSettled;
  readonly refused: number;
  /** At most 20 of the hosts that refused the release. */
  readonly refusedHosts: readonly { readonly host: string; readonly key: string; readonly code: string }[];
  /** Silent hosts that `of` does not include. */
  readonly excepted: number;
  /** Hosts that count and run a later serial, of a repository in which at least one of them knows this release. */
  readonly later: number;
  /** The greatest serial on these hosts. */
  readonly supersededBy?: number;
  /** Hosts that report it and share their key with a clone; not in the numbers above. Undefined from older servers. */
  readonly cloned?: number;
  /** Hosts that count and report this serial with another manifest: it is of another repository, or the report is false. */
  readonly elsewhere: number;
  /** At most 20 of these hosts. Undefined from older servers. */
  readonly elsewhereHosts?: readonly { readonly host: string; readonly key: string }[];
  /** SHA-256 (hex) of the manifest of the counted release: of the signed release, else of the one that most hosts report. */
  readonly manifest?: string;
  readonly withdrawn?: true;
  /** The repository was read after the wait began, and its metadata lists no such serial. */
  readonly absent?: true;
  /** Serial of the channel's head. Present if signed metadata decided about this release. */
  readonly signedSerial?: number;
  /** Begin of the reading that found this release to be the head. Undefined if there was none. */
  readonly readAtMs?: number;
}

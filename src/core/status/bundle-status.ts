// What a status says of one bundle: its active release, where that stands in its bake time, and what the repository has.
// Members are a promise (additive within schema 1).
import type { MissedStatus } from './missed-release.js';

export interface BundleStatus {
  readonly bundle: string;
  readonly channel: string;
  /** Active release; left out when this bundle has none yet. */
  readonly serial?: number;
  readonly revision?: string;
  readonly activatedAtMs?: number;
  /** Serial of the offered release that withdraws the active one; left out where the active one is not withdrawn. */
  readonly withdrawnBy?: number;
  /** What the repository offers, as of the last contact; left out before the first, or when it lists none. */
  readonly server?: {
    readonly serial: number;
    readonly revision: string;
    /** What the release requires of the Writ that takes it; left out where that is nothing. */
    readonly requires?: readonly string[];
    /** Serial of the release that it corrects; left out where it corrects none. */
    readonly fixes?: number;
  };
  /** What is offered and could not be had; left out where the host has it, or is not to have it now. */
  readonly missed?: MissedStatus;
  /** Left out for a release without a bake time (`bake: {for: 0}`), and before an agent of this version has run. */
  readonly bake?: BakeStatus;
}

/** What a bake time waits for. */
export interface BakeWait {
  /**
   * `worker`: a living worker of these groups that has taken the release. `probe`: a right answer of the probe of these workers.
   * `contact`: an answer of the server. `agent`: an agent that looks. `set`: the bake time of these bundles of its `together` set.
   */
  readonly what: 'worker' | 'probe' | 'contact' | 'agent' | 'set';
  /** Names of groups, of workers as `group/worker`, or of bundles; left out for the others. */
  readonly of?: readonly string[];
}

/** Where a release stands after its activation. */
export interface BakeStatus {
  /** `failed`: it failed within its bake time, and nothing could be restored. */
  readonly state: 'baking' | 'settled' | 'failed';
  /** Milliseconds until the bake time ends, as long as an agent observes it; there while it bakes. */
  readonly leftMs?: number;
  /** The whole bake time in milliseconds; there while it bakes. */
  readonly forMs?: number;
  /** True while no worker has taken the release: its bake time does not pass. */
  readonly untaken?: boolean;
  /** There while the bake time does not pass, or is over and the release has not settled. */
  readonly waitsFor?: BakeWait;
  /** Epoch milliseconds: when it settled or failed. */
  readonly atMs?: number;
  /** Of a settled release: false where no agent observed its bake time. */
  readonly observed?: boolean;
  /** Error code and text of the failure. */
  readonly cause?: string;
  readonly text?: string;
  /** Workers whose process ended since the activation; not there once it settled. */
  readonly ends?: readonly {
    /** As `group/worker`. */
    readonly worker: string;
    /** Recorded as abnormal by the supervisor, and not recorded at all. */
    readonly abnormal: number;
    readonly unexplained: number;
  }[];
}

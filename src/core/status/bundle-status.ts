// The status of one bundle: its active release, the state of its bake time, and the offered release. The members are part of
// schema 1 of `writ status`, which only gets new members.
import type { MissedStatus } from './missed-release.js';

export interface BundleStatus {
  readonly bundle: string;
  readonly channel: string;
  /** Serial of the active release; left out before the first. */
  readonly serial?: number;
  readonly revision?: string;
  readonly activatedAtMs?: number;
  /** Serial of the offered release that withdraws the active one; left out if the active one is not withdrawn. */
  readonly withdrawnBy?: number;
  /** The offered release as of the last contact; left out before the first contact, or if the channel lists none. */
  readonly server?: {
    readonly serial: number;
    readonly revision: string;
    /** Features that the release requires of its hosts; left out if it requires none. */
    readonly requires?: readonly string[];
    /** Serial of the release that it corrects; left out if it corrects none. */
    readonly fixes?: number;
  };
  /** An offered release that could not be fetched; left out if it is active, or if this host must not activate it now. */
  readonly missed?: MissedStatus;
  /** Left out for a release without a bake time (`bake: {for: 0}`), and before the first run of an agent of this version. */
  readonly bake?: BakeStatus;
}

/** The condition that a bake time waits for. */
export interface BakeWait {
  /**
   * `worker`: a living worker of these groups that accepted the release, or these workers, because their processes ended. `successor`: a notification of the new process of these
   * workers. `probe`: a right probe of these workers. `contact`: an answer of the server. `observation`: the next one by the agent,
   * which has started or notifies workers. `agent`: an agent that observes. `set`: the bake time of these bundles of its
   * `together` set.
   */
  readonly what: 'worker' | 'successor' | 'probe' | 'contact' | 'observation' | 'agent' | 'set';
  /** Names of groups, of workers as `group/worker`, or of bundles; left out for the others. */
  readonly of?: readonly string[];
}

/** A command without an agent, as `writ pull --settled`, observes these bake times. */
export interface CommandObservation {
  /** Epoch milliseconds: without a later observation the bake times wait for an agent from then on. */
  readonly untilMs: number;
  /** Names of bundles: the command can observe all their workers. */
  readonly bundles: readonly string[];
}

/** The state of a release after its activation. */
export interface BakeStatus {
  /** `failed`: it failed within its bake time, and no generation could be restored. */
  readonly state: 'baking' | 'settled' | 'failed';
  /** Milliseconds of observation until the bake time ends; present while it bakes. */
  readonly leftMs?: number;
  /** Length of the bake time in milliseconds; present while it bakes. */
  readonly forMs?: number;
  /** True while no worker has accepted the release; its bake time does not pass then. */
  readonly untaken?: boolean;
  /** Epoch milliseconds since when no worker has had the release; present once that exceeds three bake times and the deadlines. */
  readonly untakenSinceMs?: number;
  /** Present while the bake time does not pass, or after it ended and the release has not settled. */
  readonly waitsFor?: BakeWait;
  /** Epoch milliseconds: when it settled or failed. */
  readonly atMs?: number;
  /** For a settled release: false if no agent observed its bake time. */
  readonly observed?: boolean;
  /** Error code and text of the failure. */
  readonly cause?: string;
  readonly text?: string;
  /** Workers with a process that ended since the activation; left out after the release settled. */
  readonly ends?: readonly {
    /** As `group/worker`. */
    readonly worker: string;
    /** Number of exits that the supervisor recorded as abnormal, and of exits that it did not record. */
    readonly abnormal: number;
    readonly unexplained: number;
  }[];
}

// What each kind of daemon declares, so that every case can run with it. Each file of daemons/ is one daemon of Debian 12.
import type { Places } from '../rules/recipe.js';

export type Tree = Readonly<Record<string, string>>;

/** The reason why this daemon has no such case. */
export interface Never {
  readonly never: string;
}

/** The directories and ports of one daemon in one case. */
export interface Stage {
  /** A private directory that other users may read. */
  readonly dir: string;
  /** Replaces `/var/lib/writ/policy` of the pages. */
  readonly policy: string;
  readonly ports: readonly [number, number, number];
}

export interface Daemon {
  readonly name: string;
  /** The packages for `apt-get install`. */
  readonly packages: readonly string[];
  readonly programs: readonly string[];
  /** A release with `version`, such as `v2`, in every part. */
  readonly good: (version: string, stage: Stage) => Tree;
  /** A release that the daemon cannot load at all. */
  readonly bad: (version: string, stage: Stage) => Tree;
  /** A release that the daemon may load in part when no check refuses it. */
  readonly half: ((version: string, stage: Stage) => Tree) | Never;
  /** Files of a release with a stamp. */
  readonly stamps?: readonly string[];
  /** `none`: a program that exits by itself, and cannot be dead, stopped or absent. */
  readonly process: 'daemon' | 'none';
  /** `after-policy`: it does not start without a policy. Omitted when it starts at any time. */
  readonly starts?: 'after-policy';
  /** Removes the daemon's loaded policy with its control program, as an operator could. */
  readonly empty: ((instance: Instance) => Promise<void>) | Never;
  readonly open: (stage: Stage) => Instance;
}

export interface Instance extends AsyncDisposable {
  readonly places: Places;
  /** Writes the daemon's own configuration. @param own its lines of the page, with the local paths and ports */
  prepare(own: string): void;
  /** Starts the daemon; resolves when it serves, or waits for a policy. */
  start(): Promise<void>;
  /** Sends SIGKILL to all its processes. */
  kill(): Promise<void>;
  stopAndGo(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /**
   * Queries the daemon itself, not the files. @returns the version that all parts serve; different versions joined by a
   * plus
   */
  ask(): Promise<string | undefined>;
  /** Runs the daemon's control program. */
  readonly control?: (...args: string[]) => Promise<string | undefined>;
  /** The prefix of a command that runs `writ`, such as `nsenter`. */
  readonly under?: readonly string[];
}

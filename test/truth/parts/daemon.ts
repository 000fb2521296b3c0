// What one kind of daemon must declare so that every case can be played with it. Owns the shape; each file of daemons/ is
// one daemon of Debian 12.
import type { Places } from '../rules/recipe.js';

export type Tree = Readonly<Record<string, string>>;

/** Why there is no such thing with this daemon. */
export interface Never {
  readonly never: string;
}

/** Where one daemon lives for one case. */
export interface Stage {
  /** A directory of its own; others may read it. */
  readonly dir: string;
  /** Stands for `/var/lib/writ/policy` of the pages. */
  readonly policy: string;
  readonly ports: readonly [number, number, number];
}

export interface Daemon {
  readonly name: string;
  /** What `apt-get install` needs. */
  readonly packages: readonly string[];
  readonly programs: readonly string[];
  /** A release in which every part says `version`, as `v2`. */
  readonly good: (version: string, stage: Stage) => Tree;
  /** One that the daemon cannot use at all. */
  readonly bad: (version: string, stage: Stage) => Tree;
  /** One of which the daemon, asked without a check, may take a part. */
  readonly half: ((version: string, stage: Stage) => Tree) | Never;
  /** Files of a release in which the publisher fills in a stamp. */
  readonly stamps?: readonly string[];
  /** `none`: a program that ends by itself; it cannot be dead, stopped or absent. */
  readonly process: 'daemon' | 'none';
  /** `after-policy`: it does not start without one. Left out: it starts at any time. */
  readonly starts?: 'after-policy';
  /** Removes from outside what the daemon uses, as a colleague with its control program would. */
  readonly empty: ((instance: Instance) => Promise<void>) | Never;
  readonly open: (stage: Stage) => Instance;
}

export interface Instance extends AsyncDisposable {
  readonly places: Places;
  /** Writes what the daemon reads at its start. @param own its lines of the page, with the places of here */
  prepare(own: string): void;
  /** Resolves when it serves, or waits for a policy. */
  start(): Promise<void>;
  /** SIGKILL to all its processes. */
  kill(): Promise<void>;
  stopAndGo(signal: 'SIGSTOP' | 'SIGCONT'): void;
  /** Asks the daemon, and not what lies on the disk. @returns the version that all parts serve; parts that differ with a plus */
  ask(): Promise<string | undefined>;
  /** Runs the daemon's own control program. */
  readonly control?: (...args: string[]) => Promise<string | undefined>;
  /** A program that runs `writ`, as `nsenter`. */
  readonly under?: readonly string[];
}

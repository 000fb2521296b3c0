// What a case is: its column of the page, and what is seen at each look. Owns the shape alone.
import type { Daemon, Instance, Stage } from '../parts/daemon.js';
import type { Repeat } from '../rules/recipe.js';
import type { Answers, Judge, TruthHost } from '../stage/host.js';

export interface Look {
  readonly what: string;
  readonly release: 'good' | 'bad';
  readonly answers: Answers;
  readonly served: string | undefined;
}

/** One daemon and one host, before anything was published. */
export interface Scene {
  readonly daemon: Daemon;
  readonly stage: Stage;
  readonly instance: Instance;
  readonly host: TruthHost;
  readonly repeat: Repeat;
  /** Resolves after so many milliseconds of the real daemon's time. */
  readonly pause: (ms: number) => Promise<void>;
}

export interface Case {
  readonly name: string;
  /** One line for the reader of the page. */
  readonly what: string;
  /** What of the page is left out. */
  readonly without: readonly Judge[];
  /** Why this case cannot be played with this daemon. */
  readonly never?: (daemon: Daemon, agent: string) => string | undefined;
  readonly play: (scene: Scene) => Promise<readonly Look[]>;
}

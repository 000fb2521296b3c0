// The shape of a case: its column of the page, and what is recorded at each observation.
import type { Daemon, Instance, Stage } from '../parts/daemon.js';
import type { Repeat } from '../rules/recipe.js';
import type { Answers, Judge, TruthHost } from '../stage/host.js';

export interface Observation {
  readonly what: string;
  readonly release: 'good' | 'bad';
  readonly answers: Answers;
  readonly served: string | undefined;
}

/** One daemon and one host, before any publish. */
export interface Scene {
  readonly daemon: Daemon;
  readonly stage: Stage;
  readonly instance: Instance;
  readonly host: TruthHost;
  readonly repeat: Repeat;
  /** Waits for this time of the real daemon, in milliseconds. */
  readonly pause: (ms: number) => Promise<void>;
}

export interface Case {
  readonly name: string;
  /** A line that describes the case on the page. */
  readonly what: string;
  /** The parts of the page's configuration that the case omits. */
  readonly without: readonly Judge[];
  /** The reason why the case cannot run with this daemon; undefined when it can. */
  readonly never?: (daemon: Daemon, agent: string) => string | undefined;
  readonly play: (scene: Scene) => Promise<readonly Observation[]>;
}

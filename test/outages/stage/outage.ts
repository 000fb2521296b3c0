// What an outage is to this program: its names, and a replay on one real host. Types alone.
import type { TempDir } from '../../kit/disk/temp-dir.js';

/** What a worker served over time. */
export interface Sample {
  /** Milliseconds of the monotonic clock. */
  readonly atMs: number;
  /** What `policy/current` names, as `generations/2`; undefined before the first policy. */
  readonly current: string | undefined;
  /** The answer of each worker; undefined where none came within a second. */
  readonly answers: readonly (string | undefined)[];
}

/** What a replay found. */
export interface Replayed {
  /** Of each event the kind, the code and the reason, as the host recorded it. */
  readonly happened: readonly string[];
  /** Seconds from the activation until all workers served the old policy again; undefined where no worker ever left it. */
  readonly awaySeconds: number | undefined;
  /** What the workers answer at the end. */
  readonly serves: string;
  /** What is not as expected; empty where all is. */
  readonly complaints: readonly string[];
}

export interface ReplayOptions {
  readonly dir: TempDir;
  /** A line for a person who waits. */
  readonly say: (line: string) => void;
}

export interface Outage {
  /** As `--only` takes it. */
  readonly name: string;
  /** As the public knows it. */
  readonly title: string;
  readonly mechanism: string;
  /** How the workers run, and what Writ can see of them. */
  readonly supervisor: string;
  /** Why it cannot be replayed on this machine; undefined where it can. */
  readonly missing: () => string | undefined;
  readonly replay: (options: ReplayOptions) => Promise<Replayed>;
}

// The types of an outage: its names, and a replay on one real host.
import type { TempDir } from '../../kit/disk/temp-dir.js';

/** The responses of the workers at one moment. */
export interface Sample {
  /** Milliseconds of the monotonic clock. */
  readonly atMs: number;
  /** The target of `policy/current`, such as `generations/2`; undefined before the first policy. */
  readonly current: string | undefined;
  /** The response of each worker; undefined without one within a second. */
  readonly answers: readonly (string | undefined)[];
}

/** The result of a replay. */
export interface Replayed {
  /** The kind, code and reason of each event, as the host recorded it. */
  readonly happened: readonly string[];
  /** Seconds from the activation until all workers served the old policy again; undefined where no worker ever left it. */
  readonly awaySeconds: number | undefined;
  /** The responses of the workers at the end. */
  readonly serves: string;
  /** The differences to the expected result; empty when there are none. */
  readonly complaints: readonly string[];
}

export interface ReplayOptions {
  readonly dir: TempDir;
  /** Reports a line of progress. */
  readonly report: (line: string) => void;
}

export interface Outage {
  /** The name for `--only`. */
  readonly name: string;
  /** The public name and date. */
  readonly title: string;
  readonly mechanism: string;
  /** How the workers run, and what Writ can see of them. */
  readonly supervisor: string;
  /** The reason why it cannot be replayed on this machine; undefined when it can. */
  readonly missing: () => string | undefined;
  readonly replay: (options: ReplayOptions) => Promise<Replayed>;
}

// What every command that judges a candidate stands on, check and canary alike: where the candidate lies, what it sees
// of policy, and where it may write. Made in one way, so that no step judges another candidate than the one before.
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import type { Generation } from '../generations/generations.js';
import type { CandidateSandbox } from '../hooks/hook.js';
import { confineOn } from '../hooks/host-sandbox.js';
import type { CandidateBundle, CandidateOptions } from '../staging/candidate.js';
import type { StagedBundle } from '../staging/stage-bundle.js';
import type { Host } from '../state/host.js';
import { candidateView } from './candidate-view.js';

export interface CandidateGround {
  /** The candidate generation directory. */
  readonly candidatePath: string;
  /** The active generation directory; left out before the first activation. */
  readonly currentPath?: string;
  /** Left out: no command is confined. */
  readonly confine?: CandidateSandbox;
  /** An existing private directory in staging. */
  readonly scratchRoot: string;
  readonly durable: DurableFs;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

/** @param bundles all of the candidate, also those that are active already */
export function candidateGround(
  host: Host,
  candidatePath: string,
  bundles: readonly CandidateBundle[],
  options: CheckAllOptions,
): CandidateGround & { readonly confine: CandidateSandbox } {
  return {
    candidatePath,
    scratchRoot: options.staging,
    durable: host.durable,
    clock: host.clock,
    log: host.log,
    signal: options.signal,
    ...(options.current === undefined ? {} : { currentPath: options.current.path }),
    confine: { ...confineOn(host), view: candidateView(bundles, options) },
  };
}

export interface CheckAllOptions extends CandidateOptions {
  readonly staged: ReadonlyMap<string, StagedBundle>;
  /** The active generation; left out before the first activation. */
  readonly current?: Generation;
  /** How many candidates were built before in this attempt: each has a directory of its own. */
  readonly built?: number;
}

// What the parts of one cycle share. Types alone; sync-cycle.ts has the order.
import type { BundleResult, CycleEventLine, Trigger } from '../../core/cycle/cycle-report.js';
import type { CycleFindings } from '../job/cycle-result.js';
import type { CycleStory } from '../job/progress.js';
import type { StagingArea } from '../job/staging-area.js';
import type { Host } from '../state/host.js';

export interface CycleRequest {
  readonly cycle: string;
  readonly trigger: Trigger;
  /** Ignores ETag, holds and the memory of refusals; fetches and verifies again; skips no check. */
  readonly force: 'yes' | 'no';
  readonly signal: AbortSignal;
  readonly onEvent?: (event: CycleEventLine) => void;
}

/** What the parts of one cycle share. */
export interface Cycle {
  readonly host: Host;
  readonly story: CycleStory;
  readonly request: CycleRequest;
  readonly findings: CycleFindings;
  readonly area: StagingArea;
  /** Bundles that a worker refused earlier in this cycle, with their results. */
  readonly refusedNow: Map<string, BundleResult>;
}

// What a cycle is asked for. Types alone; sync-cycle.ts has the order of its steps.
import type { CycleEventLine, Trigger } from '../../core/cycle/cycle-report.js';

export interface CycleRequest {
  readonly cycle: string;
  readonly trigger: Trigger;
  /** Ignores ETag, holds and the memory of refusals; fetches and verifies again; skips no check. */
  readonly force: 'yes' | 'no';
  readonly signal: AbortSignal;
  readonly onEvent?: (event: CycleEventLine) => void;
}

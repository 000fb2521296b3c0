// What a cycle is asked for. Types alone; sync-cycle.ts has the order of its steps.
import type { CycleEventLine, Trigger } from '../../core/cycle/cycle-report.js';
import type { RefreshAttempt } from '../../core/status/freshness.js';
import type { YieldTurn } from '../job/exclusive.js';

export interface CycleRequest {
  readonly cycle: string;
  readonly trigger: Trigger;
  /** Ignores ETag, holds and the memory of refusals; fetches and verifies again; skips no check. */
  readonly force: 'yes' | 'no';
  readonly signal: AbortSignal;
  readonly onEvent?: (event: CycleEventLine) => void;
  /** Lets other jobs run while the cycle waits for the network; left out where there are none. */
  readonly yieldTurn?: YieldTurn;
  /** Ends a wait for the network, and the cycle with it; left out: nothing does. It ends no swap. */
  readonly interrupt?: AbortSignal;
  /** Called when a server sends from the first byte what was here in part. */
  readonly onSentAgain?: () => void;
  /** Resolves when metadata is to be refreshed during a download, or at the signal; left out: it is not. */
  readonly waitForRefresh?: (signal: AbortSignal) => Promise<void>;
  /** Called when a download begins, with the refresh before it, and after each refresh during the download. */
  readonly onRefreshed?: (attempt: RefreshAttempt | undefined) => void;
}

// The request for a cycle. Only types; sync-cycle.ts has the order of the steps.
import type { CycleEventLine, Trigger } from '../../core/cycle/cycle-report.js';
import type { RefreshAttempt } from '../../core/status/freshness.js';
import type { YieldTurn } from '../job/exclusive.js';

export interface CycleRequest {
  readonly cycle: string;
  readonly trigger: Trigger;
  /** `yes`: ignores ETag, holds and refusals, and fetches and verifies all releases again; it skips no check. */
  readonly force: 'yes' | 'no';
  readonly signal: AbortSignal;
  readonly onEvent?: (event: CycleEventLine) => void;
  /** Lets other jobs run while the cycle waits for the network; omitted if there are none. */
  readonly yieldTurn?: YieldTurn;
  /** Aborts a wait for the network and ends the cycle. It does not end a swap. */
  readonly interrupt?: AbortSignal;
  /** Called when a server does not resume a partial download and sends it from the first byte. */
  readonly onSentAgain?: () => void;
  /** Resolves when a refresh is due during a download, or at the signal; omitted: downloads cause no refresh. */
  readonly waitForRefresh?: (signal: AbortSignal) => Promise<void>;
  /** Called when a download begins, with the refresh before it, and after each refresh during the download. */
  readonly onRefreshed?: (attempt: RefreshAttempt | undefined) => void;
}

// The interface of an exit rollback: the host leaves the active policy after a cycle, without an operator.
import type { ErrorCode } from '../../core/errors.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Host } from '../state/host.js';

export interface PolicyExit {
  /** The code of the problem with the active policy, for the history. */
  readonly alarm: Extract<ErrorCode, 'UNTRUSTED_ACTIVE' | 'ACTIVE_WITHDRAWN'>;
  /**
   * Called after each cycle.
   * @returns the end of the rollback; undefined when none was necessary, or no generation can replace the policy
   */
  afterCycle(host: Host, end: Pick<CycleEnd, 'result'>, signal: AbortSignal): Promise<CycleEnd | undefined>;
}

// What may leave the active policy by itself after a cycle.
import type { ErrorCode } from '../../core/errors.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { Host } from '../state/host.js';

export interface PolicyExit {
  /** What is wrong with the active policy; the history names it. */
  readonly alarm: Extract<ErrorCode, 'UNTRUSTED_ACTIVE' | 'ACTIVE_WITHDRAWN'>;
  /**
   * Called after every cycle.
   * @returns the end of the rollback; undefined when there was nothing to leave, or nowhere to go
   */
  afterCycle(host: Host, end: Pick<CycleEnd, 'result'>, signal: AbortSignal): Promise<CycleEnd | undefined>;
}

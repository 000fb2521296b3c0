// Names a cycle and runs it: what the agent and a command without an agent have in common.
import type { CycleEventLine } from '../../core/cycle/cycle-report.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { newCycleId } from '../job/progress.js';
import type { Host } from '../state/host.js';
import type { RunOptions } from './cycle-runner.js';
import { rollBack } from './rollback.js';
import { syncCycle } from './sync-cycle.js';

/** One cycle under a new id. @throws WritError as syncCycle */
export function runSync(
  host: Host,
  options: RunOptions & { readonly signal: AbortSignal },
): Promise<CycleEnd> {
  const { trigger, onEvent, signal } = options;
  return syncCycle(host, {
    cycle: newCycleId(),
    trigger,
    force: trigger === 'force' ? 'yes' : 'no',
    signal,
    onEvent,
  });
}

export interface RollbackOptions {
  readonly generation?: number;
  readonly force?: boolean;
  readonly by: string;
  readonly reason?: string;
  readonly signal: AbortSignal;
  readonly onEvent: (event: CycleEventLine) => void;
}

/** One rollback under a new id, by default to the previous generation. @throws WritError as rollBack */
export function runRollback(host: Host, options: RollbackOptions): Promise<CycleEnd> {
  const { generation, by, reason = 'no reason given', signal, onEvent } = options;
  const force = options.force === true ? 'yes' : 'no';
  const wanted = { force, ...(generation === undefined ? {} : { generation }) } as const;
  return rollBack(host, { cycle: newCycleId(), by, reason, signal, onEvent, ...wanted });
}

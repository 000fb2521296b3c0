// Where a cycle waits for the network: the turn is given back meanwhile (adr/0060).
import { WritError } from '../../core/errors.js';
import { joinSignals } from '../../platform/time/join-signals.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { keepTurn } from '../job/exclusive.js';
import type { Job } from '../job/job.js';
import type { CycleRequest } from './cycle-request.js';

/**
 * Waits while other jobs may change the host. What is active afterwards is what the cycle replaces.
 * @throws WritError INTERRUPTED for a new configuration; whatever the wait throws
 */
export async function withoutTurn<T>(
  { host, record }: Pick<Job, 'host' | 'record'>,
  { yieldTurn = keepTurn, signal, interrupt }: Pick<CycleRequest, 'yieldTurn' | 'signal' | 'interrupt'>,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  using either = joinSignals(signal, interrupt);
  try {
    const value = await yieldTurn(() => wait(either.signal));
    requireSameConfiguration(interrupt);
    return value;
  } catch (error) {
    requireSameConfiguration(interrupt);
    throw error;
  } finally {
    record.fromGeneration = activeGenerationNumber(host.paths);
  }
}

function requireSameConfiguration(interrupt: AbortSignal | undefined): void {
  if (interrupt?.aborted !== true) return;
  const hint = 'Run `writ pull` to wait for the cycle that follows.';
  throw new WritError('INTERRUPTED', 'the configuration was changed while the cycle waited for the network', {
    hint,
  });
}

// Releases the job lock while a cycle waits for the network (adr/0060), and ends the cycle for another job (adr/0071).
import { joinSignals } from '../../platform/time/join-signals.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { endedForAnotherJob, keepTurn } from '../job/exclusive.js';
import type { Job } from '../job/job.js';
import type { CycleRequest } from './cycle-request.js';

/**
 * Waits while other jobs may change the host; afterwards the record names the generation that is active then. A cycle that
 * moved `current` is not ended for another job, because its result must be recorded.
 * @throws WritError as endedForAnotherJob; the errors of the wait
 */
export async function withoutTurn<T>(
  { host, record }: Pick<Job, 'host' | 'record'>,
  { yieldTurn = keepTurn, signal, interrupt }: Pick<CycleRequest, 'yieldTurn' | 'signal' | 'interrupt'>,
  wait: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const other = record.moves.length === 0 ? interrupt : undefined;
  using either = joinSignals(signal, other);
  const requireNotEnded = (): void => {
    if (other?.aborted === true && !signal.aborted) throw endedForAnotherJob();
  };
  try {
    const value = await yieldTurn(() => wait(either.signal));
    requireNotEnded();
    return value;
  } catch (error) {
    requireNotEnded();
    throw error;
  } finally {
    record.fromGeneration = activeGenerationNumber(host.paths);
  }
}

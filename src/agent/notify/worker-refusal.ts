// Refusals of workers as errors: creates such an error, and reads the refusing groups and all answers from one. Reads only the
// ledger; the caller decides what follows from a refusal.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { hostFaultIn } from '../../core/cycle/host-fault.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Host } from '../state/host.js';
import { groupOf, workerKey, workerOf } from './worker-ledger.js';

/** From the clearest evidence against a generation to the least clear. */
export const refusalCodes = ['WORKER_REFUSED', 'WORKER_DIED', 'SILENT_REFUSAL'] as const;
export type RefusalCode = (typeof refusalCodes)[number];

/** A notified worker that refused the generation, died of it, or refused it by silence. */
export interface WorkerRefusal {
  readonly code: RefusalCode;
  readonly result: WorkerResult;
}

/**
 * @param workers the results of the workers that refused or died
 * @param results the results of all workers, including these
 * @returns an error with the texts of these workers, and `groups`, `refused`, `results` and `hostFault` in its facts
 */
export function createRefusalError(
  code: RefusalCode,
  workers: readonly WorkerResult[],
  results: readonly WorkerResult[],
): WritError {
  const names = workers.map((one) => `${workerKey(one.group, one.worker)}: ${one.text}`);
  const groups = [...new Set(workers.map((one) => one.group))];
  const facts = { groups, refused: names, results, ...given({ hostFault: sharedHostFault(workers) }) };
  return new WritError(code, names.join('; '), { facts });
}

/**
 * Reads the host fault from the first line of each answer; lines are joined with ` | `.
 * @returns undefined if a worker names no host fault, because that worker refuses the policy
 */
function sharedHostFault(workers: readonly WorkerResult[]): string | undefined {
  const faults = workers.map(({ text }) => hostFaultIn(text.split(' | ')[0] ?? ''));
  return faults.includes(undefined) ? undefined : faults[0];
}

/** @returns names of the groups that refused; empty if the error is no refusal */
export function refusingGroupsIn({ facts }: WritError): readonly string[] {
  return (facts['groups'] ?? []) as readonly string[];
}

/** @returns the results of all workers at the time of the refusal; empty if a loader or a group probe refused */
export function resultsIn({ facts }: WritError): readonly WorkerResult[] {
  return (facts['results'] ?? []) as readonly WorkerResult[];
}

/**
 * @returns the refusals of the active generation in the ledger as one error, such as that of a worker that connected late;
 *   undefined without any
 */
export function recordedRefusal({ ledger }: Pick<Host, 'ledger'>, active: number): WritError | undefined {
  const refused = Object.entries(ledger.read().workers).flatMap(([key, one]) => {
    const { state, wanted, goneAtMs, text, atMs } = one;
    if (state !== 'refused' || wanted !== active || goneAtMs !== undefined) return [];
    return [{ group: groupOf(key), worker: workerOf(key), state, generation: wanted, text, atMs }];
  });
  return refused.length === 0 ? undefined : createRefusalError('WORKER_REFUSED', refused, refused);
}

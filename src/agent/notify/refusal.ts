// A worker's no as an error, and what can be read from one: who said it, and what everybody else answered. Decides nothing
// about what follows from it, and reads the ledger alone.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { hostFaultIn } from '../../core/cycle/host-fault.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Host } from '../state/host.js';
import { groupOf, workerKey, workerOf } from './worker-ledger.js';

/** From the clearest no to the least clear one. */
export const noCodes = ['WORKER_REFUSED', 'WORKER_DIED', 'SILENT_REFUSAL'] as const;
export type NoCode = (typeof noCodes)[number];

/** A worker that was notified, and cannot live with it. */
export interface No {
  readonly code: NoCode;
  readonly result: WorkerResult;
}

/**
 * What workers that could not live with a generation mean for it.
 * @param results every answer, theirs among them
 */
export function refusal(
  code: NoCode,
  workers: readonly WorkerResult[],
  results: readonly WorkerResult[],
): WritError {
  const names = workers.map((one) => `${workerKey(one.group, one.worker)}: ${one.text}`);
  const groups = [...new Set(workers.map((one) => one.group))];
  const facts = { groups, refused: names, results, ...given({ hostFault: faultOf(workers) }) };
  return new WritError(code, names.join('; '), { facts });
}

/** The lines of an answer are one by now, with bars between them. A worker that names none refuses the policy. */
function faultOf(workers: readonly WorkerResult[]): string | undefined {
  const faults = workers.map(({ text }) => hostFaultIn(text.split(' | ')[0] ?? ''));
  return faults.includes(undefined) ? undefined : faults[0];
}

/** @returns names of the groups that refused; none where the error is nobody's no */
export function groupsIn({ facts }: WritError): readonly string[] {
  return (facts['groups'] ?? []) as readonly string[];
}

/** @returns every answer that was had when somebody refused; none where a loader or a probe of a whole group said it */
export function resultsIn({ facts }: WritError): readonly WorkerResult[] {
  return (facts['results'] ?? []) as readonly WorkerResult[];
}

/** @returns the refusal of workers that refused by themselves, as one that connected late; undefined when nobody did */
export function standingRefusal({ ledger }: Pick<Host, 'ledger'>, active: number): WritError | undefined {
  const refused = Object.entries(ledger.read().workers).flatMap(([key, one]) => {
    const { state, wanted, goneAtMs, text, atMs } = one;
    if (state !== 'refused' || wanted !== active || goneAtMs !== undefined) return [];
    return [{ group: groupOf(key), worker: workerOf(key), state, generation: wanted, text, atMs }];
  });
  return refused.length === 0 ? undefined : refusal('WORKER_REFUSED', refused, refused);
}

// Workers that said no to what is active by themselves, as one that connected late: the ledger has them until something is
// done about it. Reads only.
import type { WritError } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import { refusal } from './refusal.js';
import { groupOf, workerOf } from './worker-ledger.js';

/** @returns the refusal of workers that said no by themselves, as one that connected late; undefined when nobody did */
export function standingRefusal(host: Host, active: number): WritError | undefined {
  const refused = Object.entries(host.ledger.read().workers).flatMap(([key, one]) => {
    const { state, wanted, goneAtMs, text, atMs } = one;
    if (state !== 'refused' || wanted !== active || goneAtMs !== undefined) return [];
    return [{ group: groupOf(key), worker: workerOf(key), state, generation: wanted, text, atMs }];
  });
  return refused.length === 0 ? undefined : refusal('WORKER_REFUSED', refused, refused);
}

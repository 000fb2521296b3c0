// Undoes the records of a move that did not move `current`: removes its journal and restores the ledger.
import { orUndefined } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import { clearJournal, readJournal } from '../state/journal.js';
import type { Ledger } from '../state/ledger.js';
import { findLostState } from './check-before-move.js';

export interface ForgottenMove {
  /** The cycle that the journal of the move names. A journal of another process stays. */
  readonly cycle: string;
  readonly before: Ledger;
}

/**
 * Undoes the records of a move. Writes nothing if the lock is lost, because every file may belong to another process then.
 * The next start reads the journal.
 * @throws WritError DISK_*
 */
export function forgetMove(host: Host, { cycle, before }: ForgottenMove): void {
  const { ledger, paths, durable } = host;
  if (findLostState(host) !== undefined) return;
  ledger.write(before);
  if (orUndefined(() => readJournal(paths))?.cycle === cycle) clearJournal(paths, durable);
}

// Whether everybody is known to use what is active: by the ledger, and not while a move is on its way, for workers that it
// has not told yet may be in no ledger. Reads only.
import { isWritError } from '../../core/errors.js';
import type { Host } from './host.js';
import { readJournal } from './journal.js';
import type { Ledger } from './ledger.js';

/** @returns true when everybody who is there proved what it is to use */
export function isProven({ paths, ledger }: Pick<Host, 'paths' | 'ledger'>): boolean {
  return isConfirmed(ledger.read()) && !isOnItsWay(paths);
}

/** Behind its swap and before its commit; of a move that ended on its way back the ledger knows all. */
function isOnItsWay(paths: Host['paths']): boolean {
  try {
    return readJournal(paths)?.direction === 'forward';
  } catch (error) {
    if (!isWritError(error)) throw error;
    return true;
  }
}

/** True when everybody who is there proved what it is to use. Who is gone uses nothing; of a set that nobody can read nothing is known. */
export function isConfirmed({ workers, unreadSets = {} }: Ledger): boolean {
  const there = Object.values(workers).filter((one) => one.goneAtMs === undefined);
  return there.every((one) => one.state === 'confirmed') && Object.keys(unreadSets).length === 0;
}

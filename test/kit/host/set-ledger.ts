// A ledger as a test wants it, past the owners of its sections: what a host would come to by many cycles, in one line.
import type { Ledger } from '../../../src/agent/state/ledger.js';
import type { StateFile } from '../../../src/agent/state/state-file.js';

/** A member that is undefined is taken out of the file. */
type Members = { readonly [Name in keyof Ledger]?: Ledger[Name] | undefined };

/** Writes these members, removes those that are undefined, and leaves the others as they are. */
export function setLedger(file: StateFile<Ledger>, members: Members): void {
  file.write(ledgerWith(file.read(), members));
}

/** @returns the ledger with these members, which no owner has checked */
export function ledgerWith(ledger: Ledger, members: Members): Ledger {
  return { ...ledger, ...members } as Ledger;
}

// Writes a ledger for a test without the owners of its members, to reach a state that needs many cycles.
import type { Ledger } from '../../../src/agent/state/ledger.js';
import type { StateFile } from '../../../src/agent/state/state-file.js';

/** An undefined member is removed from the file. */
type Members = { readonly [Name in keyof Ledger]?: Ledger[Name] | undefined };

/** Writes these members, removes undefined ones, and leaves the others unchanged. */
export function setLedger(file: StateFile<Ledger>, members: Members): void {
  file.write(ledgerWith(file.read(), members));
}

/** @returns the ledger with these members; no owner validates them */
export function ledgerWith(ledger: Ledger, members: Members): Ledger {
  return { ...ledger, ...members } as Ledger;
}

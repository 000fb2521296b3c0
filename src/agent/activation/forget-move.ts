// What is left of a move whose link did not move: its journal goes, and the ledger is as it was before.
import { orUndefined } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import { clearJournal, readJournal } from '../state/journal.js';
import type { Ledger } from '../state/ledger.js';
import { findLostState } from './look-before-move.js';

export interface ForgottenMove {
  /** The one that the journal of the move names: the journal of another process stays. */
  readonly cycle: string;
  readonly before: Ledger;
}

/** Writes nothing without the lock in its place: every file may be that of another process, and its next start sees the journal. */
export function forgetMove(host: Host, { cycle, before }: ForgottenMove): void {
  const { ledger, paths, durable } = host;
  if (findLostState(host) !== undefined) return;
  ledger.write(before);
  if (orUndefined(() => readJournal(paths))?.cycle === cycle) clearJournal(paths, durable);
}

// Restores on a disk that cannot be written. The reserve file is freed first; what still cannot be written stays in memory
// until the disk accepts it. Owns that memory, and decides when the journal may be removed. The move of the link never waits
// for the disk (adr/0053).
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { type ErrorCode, errorCodes } from '../../core/error-codes.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Host, RestoreMemory, UnrecordedRestore } from './host.js';
import { clearJournal, journalText, readJournal, writeJournal } from './journal.js';
import type { Journal, JournalRefusal } from './recovery-rules.js';
import { ensureReserve, releaseReserve, writeIntoReserve } from './reserve-file.js';
import { isDiskError } from './state-file.js';

/** @returns a memory without a restore that the disk refused */
export function createRestoreMemory(): RestoreMemory {
  return { entries: [] };
}

type RestoreHost = Pick<Host, 'paths' | 'durable' | 'ledger' | 'refusals' | 'restoreMemory' | 'log'>;

/** Until the result is disposed of, a failed write frees the reserve and is retried; ledger and refusals then stay in memory. */
export function tolerateDiskErrors(host: RestoreHost): Disposable {
  const freeSpace = (): boolean => freeReserve(host);
  const open = [host.ledger.tolerateDiskErrors(freeSpace), host.refusals.tolerateDiskErrors(freeSpace)];
  return {
    [Symbol.dispose]: () => {
      for (const one of open) one[Symbol.dispose]();
    },
  };
}

/** @returns true if the reserve existed, so that its space is free now */
export function freeReserve({ paths, durable, restoreMemory, log }: RestoreHost): boolean {
  const isFreed = releaseReserve(paths, durable);
  if (!isFreed) return false;
  log.warn('a restore used up the reserve file on the disk');
  restoreMemory.reserveNotBeforeMs = 0;
  restoreMemory.reserveError = new WritError('DISK_FULL', 'a restore used up the reserve file');
  return true;
}

/** Calls `act`, and after a disk error once more with the reserve freed. @throws the error of the last call */
export function retryWithReserve<T>(host: RestoreHost, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!isDiskError(error) || !freeReserve(host)) throw error;
    return act();
  }
}

/** As retryWithReserve, for an asynchronous `act`. */
export async function retryWithReserveAsync<T>(host: RestoreHost, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!isDiskError(error) || !freeReserve(host)) throw error;
    return act();
  }
}

/**
 * Writes the direction `back` into the journal, before the link moves if possible. Tries the journal reserve before it frees
 * the larger reserve file, because another process may take the freed space at once. If all attempts fail, the journal stays
 * in memory.
 * @param refused written only if rejected.json could not take the refusals
 */
export function writeRestoreJournal(
  host: RestoreHost,
  journal: Journal,
  refused: JournalRefusal | undefined,
): void {
  const { paths, durable, refusals } = host;
  const isNeeded = refused !== undefined && refusals.writeError() !== undefined;
  const restoreJournal: Journal = isNeeded ? { ...journal, refused } : journal;
  const attempts = [
    () => writeJournal(paths, durable, restoreJournal),
    () => writeIntoReserve(paths, durable, { path: paths.journal, text: journalText(restoreJournal) }),
    () => retryWithReserve(host, () => writeJournal(paths, durable, restoreJournal)),
  ];
  let diskError: WritError | undefined;
  for (const attempt of attempts) {
    try {
      attempt();
      return;
    } catch (error) {
      if (!isDiskError(error)) throw error;
      diskError = error;
    }
  }
  if (diskError !== undefined) keepUnrecordedRestore(host, { journal: restoreJournal, diskError });
}

const maxMessageCharacters = 1000;

/** @returns the refusal for a journal, with its message cut to 1000 characters */
export function toJournalRefusal({ code, message }: WritError, bundles: readonly string[]): JournalRefusal {
  return { code, message: message.slice(0, maxMessageCharacters), bundles };
}

/** @returns the error of a journal; an unknown code, of a later version, becomes WORKER_REFUSED */
export function fromJournalRefusal({ code, message }: JournalRefusal): WritError {
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'WORKER_REFUSED';
  return new WritError(known, message);
}

/** Keeps in memory what the disk does not have of a restore; the first disk error stays. */
export function keepUnrecordedRestore(
  { restoreMemory, log }: Pick<RestoreHost, 'restoreMemory' | 'log'>,
  restore: UnrecordedRestore,
): void {
  const { journal, diskError } = restore;
  log.error({ err: diskError, to: journal.to }, 'a restore could not be recorded on the disk');
  const known = restoreMemory.unrecorded;
  restoreMemory.unrecorded = { ...known, ...restore, diskError: known?.diskError ?? diskError };
}

/**
 * Removes the journal of a restore if everything is on the disk. Otherwise the journal stays, so that a start repeats the
 * restore and does not activate what was refused.
 */
export function finishRestore(host: RestoreHost, journal: Journal, refusal?: WritError): void {
  const { ledger, refusals, paths, durable, restoreMemory } = host;
  const diskError = ledger.writeError() ?? refusals.writeError() ?? restoreMemory.unrecorded?.diskError;
  if (diskError !== undefined) {
    keepUnrecordedRestore(host, { journal, diskError, ...given({ refusal }) });
    return;
  }
  try {
    clearJournal(paths, durable);
  } catch (error) {
    if (!isDiskError(error)) throw error;
    keepUnrecordedRestore(host, { journal, diskError: error, ...given({ refusal }) });
  }
}

/**
 * Drops the journal of a failed restore after its block ended: no start has to repeat that restore.
 * @param shouldNotify whether the next start still notifies all workers of the active generation
 */
export function dropBlockedRestore(
  { paths, durable }: Pick<Host, 'paths' | 'durable'>,
  { active, shouldNotify }: { readonly active: number | undefined; readonly shouldNotify: boolean },
): void {
  const journal = readJournal(paths);
  // The next start handles a link that is not restored, and a refusal that no other file has.
  if (journal?.direction !== 'back' || journal.from !== active || journal.refused !== undefined) return;
  if (!shouldNotify || active === undefined) clearJournal(paths, durable);
  else writeJournal(paths, durable, { ...journal, to: active });
}

/** Writes a commit that the disk refused before, unless another generation is active now. @throws WritError DISK_* */
function commitUncommitted(
  { ledger, paths, durable, restoreMemory }: RestoreHost,
  active: number | undefined,
): void {
  if (restoreMemory.uncommitted === active) {
    ledger.write(ledger.read());
    clearJournal(paths, durable);
  }
  restoreMemory.uncommitted = undefined;
}

/**
 * Writes what a restore or a commit could not write, and creates the reserve again.
 * @param active the generation that `current` names
 * @returns `nothing`: nothing was unwritten. `full`: the disk still fails. `recorded`: all is written. `unmoved`: all is
 *   written, and the caller must still move the link back
 */
export function recordRestore(
  host: RestoreHost & Pick<Host, 'clock'>,
  { active }: { readonly active: number | undefined },
): 'nothing' | 'full' | 'recorded' | 'unmoved' {
  const { ledger, refusals, paths, durable, restoreMemory, log } = host;
  const { unrecorded: restore } = restoreMemory;
  try {
    if (restore === undefined) {
      if (restoreMemory.uncommitted !== undefined) commitUncommitted(host, active);
      remakeReserve(host);
      return 'nothing';
    }
    refusals.write(refusals.read());
    ledger.write(ledger.read());
    if (active === restore.journal.to) {
      writeJournal(paths, durable, restore.journal);
      restoreMemory.unrecorded = undefined;
      return 'unmoved';
    }
    // After a block the journal stays, so that the next start repeats the restore, as after every block.
    if (ledger.read().blocked === undefined) clearJournal(paths, durable);
  } catch (error) {
    if (!isDiskError(error)) throw error;
    log.debug({ err: error }, 'a move is still not recorded');
    return 'full';
  }
  restoreMemory.unrecorded = undefined;
  restoreMemory.uncommitted = undefined;
  restoreMemory.reserveNotBeforeMs = 0;
  remakeReserve(host);
  return 'recorded';
}

const reserveGapMs = 10_000;

/** Creates the reserve; at most one attempt in 10 s while the disk has no space for it. */
export function remakeReserve({
  paths,
  durable,
  restoreMemory,
  clock,
  log,
}: RestoreHost & Pick<Host, 'clock'>): void {
  const nowMs = clock.monotonicMs();
  if (nowMs < (restoreMemory.reserveNotBeforeMs ?? 0)) return;
  try {
    ensureReserve(paths, durable);
    restoreMemory.reserveError = undefined;
    restoreMemory.reserveNotBeforeMs = Number.POSITIVE_INFINITY;
  } catch (error) {
    if (!isDiskError(error)) throw error;
    if (restoreMemory.reserveError === undefined)
      log.warn({ err: error }, 'the disk has no space for the reserve file of restores');
    restoreMemory.reserveError = error;
    restoreMemory.reserveNotBeforeMs = nowMs + reserveGapMs;
  }
}

/** @returns the problems to report: a restore that is not recorded, or else a missing reserve */
export function restoreProblems({ restoreMemory }: Pick<Host, 'restoreMemory'>, active?: number): Problem[] {
  const { unrecorded, reserveError } = restoreMemory;
  if (unrecorded === undefined) return reserveError === undefined ? [] : [problemOf(reserveError)];
  const { journal, diskError, refusal } = unrecorded;
  const { from, to, refused } = journal;
  const code = refusal?.code ?? refused?.code;
  const why = refusal?.message ?? refused?.message ?? 'a refusal of an earlier start';
  const where =
    active === to ? `generation ${to} is still active` : `generation ${from ?? 'none'} is active again`;
  const text = `${where}, and the disk cannot record why (${diskError.code}): ${code ?? 'refused'}: ${why}`;
  const facts = {
    disk: diskError.code,
    ...given({ refused: code }),
    from,
    to,
    op: diskError.facts['op'],
    path: diskError.facts['path'],
  };
  return [problemOf(new WritError('RESTORE_UNRECORDED', text, { facts, cause: diskError }))];
}

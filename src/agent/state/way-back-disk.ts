// A way back on a disk that refuses to be written: the reserve is used up, and what still cannot be written stays in memory
// until it can. Owns that memory, and when the journal may go. The link of a way back never waits for it (adr/0053).
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { type ErrorCode, errorCodes } from '../../core/error-codes.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { Host, UnrecordedRestore, WayBackMemory } from './host.js';
import { clearJournal, journalText, readJournal, writeJournal } from './journal.js';
import type { Journal, JournalRefusal } from './recovery-rules.js';
import { ensureReserve, releaseReserve, writeIntoReserve } from './reserve-file.js';
import { isOfDisk } from './state-file.js';

export function createWayBackMemory(): WayBackMemory {
  return { entries: [] };
}

type DiskOf = Pick<Host, 'paths' | 'durable' | 'ledger' | 'refusals' | 'wayBack' | 'log'>;

/** Until it is disposed of, ledger and refusals stay in memory where the disk cannot take them, the reserve included. */
export function tolerateDisk(host: DiskOf): Disposable {
  const makeRoom = (): boolean => useReserve(host);
  const open = [host.ledger.tolerate(makeRoom), host.refusals.tolerate(makeRoom)];
  return {
    [Symbol.dispose]: () => {
      for (const one of open) one[Symbol.dispose]();
    },
  };
}

/** @returns true where the reserve was there, and is free space now */
export function useReserve({ paths, durable, wayBack, log }: DiskOf): boolean {
  const isFreed = releaseReserve(paths, durable);
  if (!isFreed) return false;
  log.warn('the reserve on the disk is used up by a way back');
  wayBack.reserveNotBeforeMs = 0;
  wayBack.noReserve = new WritError('DISK_FULL', 'the reserve for a way back was used up');
  return true;
}

/** Acts, and once more with the reserve freed where the disk refuses. @throws whatever the last try throws */
export function withRoom<T>(host: DiskOf, act: () => T): T {
  try {
    return act();
  } catch (error) {
    if (!isOfDisk(error) || !useReserve(host)) throw error;
    return act();
  }
}

/** As withRoom. */
export async function withReserve<T>(host: DiskOf, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (!isOfDisk(error) || !useReserve(host)) throw error;
    return act();
  }
}

/**
 * Turns the journal back, before the link moves where that is possible. Its own reserve comes before the larger one: a full
 * disk is often filled by what it frees.
 * @param refused written only where the refusals themselves are not
 */
export function turnJournalBack(host: DiskOf, journal: Journal, refused: JournalRefusal | undefined): void {
  const { paths, durable, refusals } = host;
  const isNeeded = refused !== undefined && refusals.unwritten() !== undefined;
  const turned: Journal = isNeeded ? { ...journal, refused } : journal;
  const attempts = [
    () => writeJournal(paths, durable, turned),
    () => writeIntoReserve(paths, durable, { path: paths.journal, text: journalText(turned) }),
    () => withRoom(host, () => writeJournal(paths, durable, turned)),
  ];
  let disk: WritError | undefined;
  for (const attempt of attempts) {
    try {
      attempt();
      return;
    } catch (error) {
      if (!isOfDisk(error)) throw error;
      disk = error;
    }
  }
  if (disk !== undefined) noteRestore(host, { journal: turned, disk });
}

const maxMessageCharacters = 1000;

/** @returns a refusal as a journal has room for it */
export function journalRefusal({ code, message }: WritError, bundles: readonly string[]): JournalRefusal {
  return { code, message: message.slice(0, maxMessageCharacters), bundles };
}

/** @returns the error that a journal remembers; a code of a later version is a refusal like any */
export function refusalError({ code, message }: JournalRefusal): WritError {
  const known = Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : 'WORKER_REFUSED';
  return new WritError(known, message);
}

/** Notes what the disk does not know of a way back; its first error stays. */
export function noteRestore(
  { wayBack, log }: Pick<DiskOf, 'wayBack' | 'log'>,
  restore: UnrecordedRestore,
): void {
  const { journal, disk } = restore;
  log.error({ err: disk, to: journal.to }, 'a way back could not be recorded on the disk');
  const known = wayBack.restore;
  wayBack.restore = { ...known, ...restore, disk: known?.disk ?? disk };
}

/**
 * The end of a way back: its journal goes once the disk knows all of it. Until then the journal stays, so that a start goes
 * back again and does not activate what was refused.
 */
export function endWayBack(host: DiskOf, journal: Journal, refusal?: WritError): void {
  const { ledger, refusals, paths, durable, wayBack } = host;
  const disk = ledger.unwritten() ?? refusals.unwritten() ?? wayBack.restore?.disk;
  if (disk !== undefined) {
    noteRestore(host, { journal, disk, ...given({ refusal }) });
    return;
  }
  try {
    clearJournal(paths, durable);
  } catch (error) {
    if (!isOfDisk(error)) throw error;
    noteRestore(host, { journal, disk: error, ...given({ refusal }) });
  }
}

/**
 * Ends the journal of a restore that failed, after the end of its block: no start has to repeat that restore.
 * @param rest `notify`: the next start still notifies all workers of the active generation
 */
export function endRestoreOfBlock(
  { paths, durable }: Pick<Host, 'paths' | 'durable'>,
  { active, rest }: { readonly active: number | undefined; readonly rest: 'nothing' | 'notify' },
): void {
  const journal = readJournal(paths);
  // A link that is not back, or a refusal that no other file has, is for the next start.
  if (journal?.direction !== 'back' || journal.from !== active || journal.refused !== undefined) return;
  if (rest === 'nothing' || active === undefined) clearJournal(paths, durable);
  else writeJournal(paths, durable, { ...journal, to: active });
}

/** Commits what the disk could not take, unless another generation is active by now. @throws WritError DISK_* */
function commitLate({ ledger, paths, durable, wayBack }: DiskOf, active: number | undefined): void {
  if (wayBack.uncommitted === active) {
    ledger.write(ledger.read());
    clearJournal(paths, durable);
  }
  wayBack.uncommitted = undefined;
}

/**
 * Writes what a way back or a commit could not, and makes the reserve again.
 * @param active the generation that `current` names
 * @returns `unmoved` where all can be written and the link is still to move back
 */
export function recordWayBack(
  host: DiskOf & Pick<Host, 'clock'>,
  { active }: { readonly active: number | undefined },
): 'nothing' | 'full' | 'recorded' | 'unmoved' {
  const { ledger, refusals, paths, durable, wayBack, log } = host;
  const { restore } = wayBack;
  try {
    if (restore === undefined) {
      if (wayBack.uncommitted !== undefined) commitLate(host, active);
      remakeReserve(host);
      return 'nothing';
    }
    refusals.write(refusals.read());
    ledger.write(ledger.read());
    if (active === restore.journal.to) {
      writeJournal(paths, durable, restore.journal);
      wayBack.restore = undefined;
      return 'unmoved';
    }
    // Behind a block the next start goes back once more, as behind any.
    if (ledger.read().blocked === undefined) clearJournal(paths, durable);
  } catch (error) {
    if (!isOfDisk(error)) throw error;
    log.debug({ err: error }, 'a move is still not recorded');
    return 'full';
  }
  wayBack.restore = undefined;
  wayBack.uncommitted = undefined;
  wayBack.reserveNotBeforeMs = 0;
  remakeReserve(host);
  return 'recorded';
}

const reserveGapMs = 10_000;

/** Makes the reserve, now and at most each 10 s where the disk has no space for it. */
export function remakeReserve({ paths, durable, wayBack, clock, log }: DiskOf & Pick<Host, 'clock'>): void {
  const nowMs = clock.monotonicMs();
  if (nowMs < (wayBack.reserveNotBeforeMs ?? 0)) return;
  try {
    ensureReserve(paths, durable);
    wayBack.noReserve = undefined;
    wayBack.reserveNotBeforeMs = Number.POSITIVE_INFINITY;
  } catch (error) {
    if (!isOfDisk(error)) throw error;
    if (wayBack.noReserve === undefined)
      log.warn({ err: error }, 'the disk has no space for the reserve of a way back');
    wayBack.noReserve = error;
    wayBack.reserveNotBeforeMs = nowMs + reserveGapMs;
  }
}

/** @returns what a person must know of a way back that is not recorded, and of a reserve that is gone */
export function unrecordedProblems({ wayBack }: Pick<Host, 'wayBack'>, active?: number): Problem[] {
  const { restore, noReserve } = wayBack;
  if (restore === undefined) return noReserve === undefined ? [] : [problemOf(noReserve)];
  const { journal, disk, refusal } = restore;
  const { from, to, refused } = journal;
  const code = refusal?.code ?? refused?.code;
  const why = refusal?.message ?? refused?.message ?? 'a refusal of an earlier start';
  const where =
    active === to ? `generation ${to} is still active` : `generation ${from ?? 'none'} is active again`;
  const text = `${where}, and the disk cannot record why (${disk.code}): ${code ?? 'refused'}: ${why}`;
  const facts = {
    disk: disk.code,
    ...given({ refused: code }),
    from,
    to,
    op: disk.facts['op'],
    path: disk.facts['path'],
  };
  return [problemOf(new WritError('RESTORE_UNRECORDED', text, { facts, cause: disk }))];
}

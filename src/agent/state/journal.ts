// The journal file, which exists only between the swap and the commit of a move. Reads, writes and removes it durably.
import { isWritError, WritError } from '../../core/errors.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import { requireKnownFormat } from './known-format.js';
import type { HostPaths } from './paths.js';
import type { Journal, JournalRefusal } from './recovery-rules.js';
import { sealed, unsealed } from './sealed-json.js';

const maxJournalBytes = 65_536;

/**
 * @returns the journal of the unfinished move; undefined if no move is unfinished
 * @throws WritError STATE_DAMAGED for an invalid journal: a journal is written atomically, so a crash cannot cause it;
 *   STATE_TOO_NEW; DISK_*
 */
export function readJournal(paths: HostPaths): Journal | undefined {
  const verdict = readSmallFile(paths.journal, { maxBytes: maxJournalBytes });
  if (verdict.kind === 'absent') return undefined;
  if (verdict.kind === 'refused') {
    if (verdict.because === 'system')
      throw diskError(verdict.cause, { op: 'journal:read', path: paths.journal });
    throw damaged(paths, verdict.why);
  }
  const value = parse(paths, verdict.bytes.toString('utf8'));
  requireKnownFormat(paths.journal, value);
  if (isJournal(value)) return value;
  throw damaged(paths);
}

function parse(paths: HostPaths, text: string): unknown {
  try {
    return unsealed(text);
  } catch (error) {
    throw damaged(paths, error);
  }
}

/**
 * Called before a start changes anything, because a start removes leftovers in staging before it reads the journal.
 * @throws WritError STATE_TOO_NEW; DISK_*
 */
export function requireKnownJournalFormat(paths: HostPaths): void {
  try {
    readJournal(paths);
  } catch (error) {
    if (!isWritError(error) || error.code !== 'STATE_DAMAGED') throw error;
  }
}

/**
 * Writes the journal with mode 0600 and flushes it. It replaces the journal of the same move.
 * @throws WritError DISK_*
 */
export function writeJournal(paths: HostPaths, durable: DurableFs, journal: Journal): void {
  durable.writeFile('swap.journal', paths.journal, journalText(journal), 0o600);
}

/** @returns the content of the journal file */
export function journalText(journal: Journal): string {
  return sealed(journal);
}

/**
 * Removes the journal and flushes its directory; does nothing where there is none.
 * @throws WritError DISK_*
 */
export function clearJournal(paths: HostPaths, durable: DurableFs): void {
  durable.removeFile('commit.journal', paths.journal);
}

function isJournal(value: unknown): value is Journal {
  if (typeof value !== 'object' || value === null) return false;
  const { writ, cycle, from, to, direction, startedAtMs, kind, refused } = value as Record<string, unknown>;
  return (
    writ === 1 &&
    typeof cycle === 'string' &&
    (from === undefined || Number.isSafeInteger(from)) &&
    Number.isSafeInteger(to) &&
    (direction === 'forward' || direction === 'back') &&
    Number.isSafeInteger(startedAtMs) &&
    (kind === 'update' || kind === 'rollback' || kind === 'repair') &&
    (refused === undefined || isRefusal(refused))
  );
}

function isRefusal(value: unknown): value is JournalRefusal {
  if (typeof value !== 'object' || value === null) return false;
  const { code, message, bundles } = value as Record<string, unknown>;
  return typeof code === 'string' && typeof message === 'string' && Array.isArray(bundles);
}

function damaged(paths: HostPaths, cause?: unknown): WritError {
  return new WritError('STATE_DAMAGED', `${paths.journal} is not a journal`, {
    facts: { path: paths.journal },
    cause,
  });
}

// The journal file: there only between swap and commit. Owns reading, writing and clearing it, durably.
import { WritError } from '../../core/errors.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { HostPaths } from './paths.js';
import type { Journal } from './recovery-rules.js';
import { sealed, unsealed } from './sealed-json.js';

const maxJournalBytes = 65_536;

/**
 * @returns the swap in flight, or undefined
 * @throws WritError STATE_DAMAGED: a journal is written whole or not at all, so a broken one is no crash's work; DISK_*
 */
export function readJournal(paths: HostPaths): Journal | undefined {
  const verdict = readSmallFile(paths.journal, { maxBytes: maxJournalBytes });
  if (verdict.kind === 'absent') return undefined;
  if (verdict.kind === 'refused') {
    if (verdict.because === 'system')
      throw diskError(verdict.cause, { op: 'journal:read', path: paths.journal });
    throw damaged(paths, verdict.why);
  }
  try {
    const value = unsealed(verdict.bytes.toString('utf8'));
    if (isJournal(value)) return value;
  } catch (error) {
    throw damaged(paths, error);
  }
  throw damaged(paths);
}

export function writeJournal(paths: HostPaths, durable: DurableFs, journal: Journal): void {
  durable.writeFile('swap.journal', paths.journal, sealed(journal), 0o600);
}

export function clearJournal(paths: HostPaths, durable: DurableFs): void {
  durable.removeFile('commit.journal', paths.journal);
}

function isJournal(value: unknown): value is Journal {
  if (typeof value !== 'object' || value === null) return false;
  const { writ, cycle, from, to, direction, startedAtMs, kind } = value as Record<string, unknown>;
  return (
    writ === 1 &&
    typeof cycle === 'string' &&
    (from === undefined || Number.isSafeInteger(from)) &&
    Number.isSafeInteger(to) &&
    (direction === 'forward' || direction === 'back') &&
    Number.isSafeInteger(startedAtMs) &&
    (kind === 'update' || kind === 'rollback' || kind === 'repair')
  );
}

function damaged(paths: HostPaths, cause?: unknown): WritError {
  return new WritError('STATE_DAMAGED', `${paths.journal} is not a journal`, {
    facts: { path: paths.journal },
    cause,
  });
}

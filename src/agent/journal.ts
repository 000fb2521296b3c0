// The journal file: there only between swap and commit. Owns reading, writing and clearing it, durably.
import * as fs from 'node:fs';
import { isSystemError, WritError } from '../core/errors.js';
import type { Journal } from '../core/recovery.js';
import type { DurableFs } from '../platform/durable-fs.js';
import type { HostPaths } from './paths.js';

const maxJournalBytes = 65_536;

/**
 * @returns the swap in flight, or undefined
 * @throws WritError STATE_DAMAGED: a journal is written whole or not at all, so a broken one is no crash's work
 */
export function readJournal(paths: HostPaths): Journal | undefined {
  let text: string;
  try {
    if (fs.statSync(paths.journal).size > maxJournalBytes) throw damaged(paths);
    text = fs.readFileSync(paths.journal, 'utf8');
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return undefined;
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (isJournal(value)) return value;
  } catch (error) {
    throw damaged(paths, error);
  }
  throw damaged(paths);
}

export function writeJournal(paths: HostPaths, durable: DurableFs, journal: Journal): void {
  durable.writeFile('swap.journal', paths.journal, `${JSON.stringify(journal)}\n`, 0o600);
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

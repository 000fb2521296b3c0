// history.jsonl: one line for each cycle with a change or a new result, oldest first, rotated at 10 MB. Owns the file. No decision
// depends on it: a host without its history works as before.
import { WritError } from '../../core/errors.js';
import { boundAnswer, type HistoryEntry } from '../../core/protocol/control-protocol.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { lstatIfPresent, readFileEnd } from '../../platform/read-file.js';
import type { HostPaths } from '../state/paths.js';
import { setAside } from '../state/set-aside.js';

const maxHistoryBytes = 10_000_000;
const maxEntryBytes = 60_000;

/**
 * Appends one entry, cut to 60 kB. Rotates the file before it would exceed 10 MB.
 * @returns paths of the history that were not regular files, and were set aside
 * @throws WritError DISK_*
 */
export function appendHistory(paths: HostPaths, durable: DurableFs, entry: HistoryEntry): string[] {
  const line = `${JSON.stringify(boundAnswer(entry, maxEntryBytes))}\n`;
  const foreign = foreignInHistory(paths);
  for (const path of foreign) setAside(durable, path);
  const size = lstatIfPresent(paths.history)?.size ?? 0;
  const isFull = size + Buffer.byteLength(line) > maxHistoryBytes;
  if (isFull) rotate(paths, durable);
  // A crash can leave half a line: the next entry must not become its other half.
  const begin = !isFull && size > 0 && lastByte(paths.history) !== newline ? '\n' : '';
  durable.appendFile('history.append', paths.history, `${begin}${line}`, 0o600);
  return foreign;
}

function rotate({ history }: HostPaths, durable: DurableFs): void {
  durable.rename('history.rotate', history, olderOf(history));
}

function olderOf(history: string): string {
  return `${history}.1`;
}

/** @returns paths of the history that are not regular files: a FIFO, a directory, a link */
export function foreignInHistory({ history }: Pick<HostPaths, 'history'>): string[] {
  return [history, olderOf(history)].filter((path) => lstatIfPresent(path)?.isFile() === false);
}

/** @returns the text of the problem of such a path, with what is lost */
export function foreignText(path: string): string {
  return `${path}: it is not a regular file; lost: the history in it`;
}

/**
 * For requests for the history: an unreadable history must not be reported as an empty one.
 * @throws WritError STATE_DAMAGED if a path of the history is not a regular file
 */
export function requireHistory(paths: HostPaths): void {
  const [path] = foreignInHistory(paths);
  if (path === undefined) return;
  throw new WritError('STATE_DAMAGED', `${path}: it is not a regular file`, {
    facts: { path },
    hint: 'The next entry, or the next start, creates it again and keeps the current file as FILE.damaged.',
  });
}

const newline = 0x0a;

function lastByte(path: string): number | undefined {
  const verdict = readFileEnd(path, { maxBytes: 1 });
  return verdict.kind === 'read' ? verdict.bytes[0] : undefined;
}

/**
 * @param options limit: at most so many; cycle: only entries of this cycle
 * @returns entries, newest first; a line that cannot be read is left out
 */
export function readHistory(
  paths: HostPaths,
  options: { readonly limit: number; readonly cycle?: string },
): HistoryEntry[] {
  const found: HistoryEntry[] = [];
  for (const line of newestFirst(paths)) {
    if (found.length >= options.limit) break;
    const entry = parseEntry(line);
    if (entry === undefined) continue;
    if (options.cycle === undefined || isOf(entry, options.cycle)) found.push(entry);
  }
  return found;
}

/** The older file is read only where the newer one is not enough: each start asks for one line. */
function* newestFirst(paths: HostPaths): Generator<string> {
  for (const path of [paths.history, olderOf(paths.history)]) yield* readLines(path).reverse();
}

/** The entry of an interrupted cycle is that of the recovery that completed it. */
function isOf({ result, recovers }: HistoryEntry, cycle: string): boolean {
  return result.cycle === cycle || recovers === cycle;
}

/** Another kind of file has no lines, and of a file above the bound only the end is read. @throws WritError DISK_* */
function readLines(path: string): string[] {
  const verdict = readFileEnd(path, { maxBytes: maxHistoryBytes + maxEntryBytes });
  if (verdict.kind === 'read') return verdict.bytes.toString('utf8').split('\n');
  if (verdict.kind === 'refused' && verdict.because === 'system')
    throw diskError(verdict.cause, { op: 'history:read', path });
  return [];
}

/** A crash can leave half a line at the end. */
function parseEntry(line: string): HistoryEntry | undefined {
  if (!line.startsWith('{')) return undefined;
  try {
    const value: unknown = JSON.parse(line);
    return isEntry(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function isEntry(value: unknown): value is HistoryEntry {
  const { type, result } = value as { type?: unknown; result?: { cycle?: unknown } };
  return type === 'history.entry' && typeof result?.cycle === 'string';
}

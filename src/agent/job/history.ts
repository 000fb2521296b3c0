// history.jsonl: one line a cycle that did something or said something new, oldest first, rotated at 10 MB.
// Owns the file; never part of a decision: a host whose history is gone works as before.
import { boundAnswer, type HistoryEntry } from '../../core/protocol/control-protocol.js';
import { type DurableFs, diskError } from '../../platform/disk/durable-fs.js';
import { lookAt, readFileEnd } from '../../platform/read-file.js';
import type { HostPaths } from '../state/paths.js';
import { keepBroken } from '../state/set-aside.js';

const maxHistoryBytes = 10_000_000;
const maxEntryBytes = 60_000;

/** Appends one entry, cut to a bound. */
export function appendHistory(paths: HostPaths, durable: DurableFs, entry: HistoryEntry): void {
  const line = `${JSON.stringify(boundAnswer(entry, maxEntryBytes))}\n`;
  const found = lookAt(paths.history);
  // A FIFO, a directory, a link: nothing that a line is added to.
  if (found?.isFile() === false) keepBroken(durable, paths.history);
  const size = found?.isFile() ? found.size : 0;
  const isFull = size + Buffer.byteLength(line) > maxHistoryBytes;
  if (isFull) rotate(paths, durable);
  // A crash can leave half a line: the next entry must not become its other half.
  const begin = !isFull && size > 0 && lastByte(paths.history) !== newline ? '\n' : '';
  durable.appendFile('history.append', paths.history, `${begin}${line}`, 0o600);
}

function rotate({ history }: HostPaths, durable: DurableFs): void {
  const older = `${history}.1`;
  if (lookAt(older)?.isDirectory() === true) keepBroken(durable, older);
  durable.rename('history.rotate', history, older);
}

const newline = 0x0a;

function lastByte(path: string): number | undefined {
  const verdict = readFileEnd(path, { maxBytes: 1 });
  return verdict.kind === 'read' ? verdict.bytes[0] : undefined;
}

/**
 * @param options.limit at most so many, the newest
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

/** The older file is read only by who is not content with the newer one: each start asks for one line. */
function* newestFirst(paths: HostPaths): Generator<string> {
  for (const path of [paths.history, `${paths.history}.1`]) yield* readLines(path).reverse();
}

/** A cycle that was cut short is told by the recovery that brought it to its end. */
function isOf({ result, recovers }: HistoryEntry, cycle: string): boolean {
  return result.cycle === cycle || recovers === cycle;
}

/** What somebody put in its place is no history, and a giant is read from its end. @throws WritError DISK_* */
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

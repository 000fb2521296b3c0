// history.jsonl: one line a cycle that did something or said something new, oldest first, rotated at 10 MB.
// Owns the file; never part of a decision: a host whose history is gone works as before.
import * as fs from 'node:fs';
import { isSystemError } from '../../core/errors.js';
import { boundAnswer, type HistoryEntry } from '../../core/protocol/control-protocol.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { HostPaths } from '../state/paths.js';

const maxHistoryBytes = 10_000_000;
const maxEntryBytes = 60_000;

/** Appends one entry, cut to a bound. */
export function appendHistory(paths: HostPaths, durable: DurableFs, entry: HistoryEntry): void {
  const line = `${JSON.stringify(boundAnswer(entry, maxEntryBytes))}\n`;
  const size = fs.statSync(paths.history, { throwIfNoEntry: false })?.size ?? 0;
  const isFull = size + Buffer.byteLength(line) > maxHistoryBytes;
  if (isFull) durable.rename('history.rotate', paths.history, `${paths.history}.1`);
  // A crash can leave half a line: the next entry must not become its other half.
  const begin = !isFull && size > 0 && lastByte(paths.history, size) !== newline ? '\n' : '';
  durable.appendFile('history.append', paths.history, `${begin}${line}`, 0o600);
}

const newline = 0x0a;

function lastByte(path: string, size: number): number | undefined {
  const byte = Buffer.alloc(1);
  const descriptor = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW);
  try {
    return fs.readSync(descriptor, byte, 0, 1, size - 1) === 1 ? byte[0] : undefined;
  } finally {
    fs.closeSync(descriptor);
  }
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

function readLines(path: string): string[] {
  try {
    return fs.readFileSync(path, 'utf8').split('\n');
  } catch (error) {
    if (isSystemError(error, 'ENOENT')) return [];
    throw error;
  }
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

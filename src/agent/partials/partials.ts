// The directory of partial downloads: one file for each signed digest, to which the bytes are appended, and a note with the version
// that the mirror sent. Defines the names of these files. A writer holds the lock of the state directory.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isWritError, orUndefined } from '../../core/errors.js';
import { type Digest, digestHex } from '../../core/names.js';
import type { DurableFs, OpenFile } from '../../platform/disk/durable-fs.js';
import { listEntries, listPaths, lstatIfPresent, readSmallFile } from '../../platform/read-file.js';
import type { SeenVersion } from '../../trust/download.js';
import type { Host } from '../state/host.js';
import { type FoundPartial, isOwnPartial, type PartialFacts, partialsToDrop } from './partial-rules.js';

/** A partial download, open for reading and writing. */
export interface Partial extends OpenFile {
  /** Its length when it was opened. */
  readonly foundBytes: number;
  /** The version of these bytes. */
  readonly seen: SeenVersion | undefined;
  /** Records the version of the next bytes. Flushes nothing, because the digest of the complete file decides. */
  note(seen: SeenVersion | undefined): void;
  /**
   * Links the complete file to a second name, in staging. The first name stays until the end of the cycle, because the next run needs
   * it until a generation retains the archive. @throws WritError DISK_*
   */
  take(to: string): void;
  /** Keeps an interrupted download, which the next run continues. */
  keep(): void;
  /** Removes a useless download. After an error of the disk the next sweep removes it. */
  discard(): void;
}

export type PartialsHost = Pick<Host, 'paths' | 'durable' | 'clock' | 'log'> & {
  readonly config: { readonly limits: Pick<Host['config']['limits'], 'maxArchiveBytes'> };
};

/** The signed facts of a file. */
export interface WholeFile {
  readonly length: number;
  readonly digest: Digest;
}

/**
 * Opens the partial download of a file, or creates an empty one. Removes one that other users can have written, or that is longer
 * than signed.
 * @throws WritError DISK_*, PATH_MOUNTED
 */
export function openPartial(host: PartialsHost, { length, digest }: WholeFile): Partial {
  const { paths, durable } = host;
  const path = join(paths.partials, digestHex(digest));
  // Without this, the removal of the directory would make each pull of a running agent fail.
  durable.ensureDirectory('prepare.private', paths.partials, 0o700);
  // A rename replaces anything else with the name of a note.
  if (lstatIfPresent(noteOf(path))?.isDirectory()) durable.removeTree('partial.replace', noteOf(path));
  const { descriptor, foundBytes } = openOrMake(durable, path, length);
  const seen = foundBytes > 0 ? readNote(noteOf(path)) : undefined;
  const forget = (): void => durable.discardFile('partial.forget', noteOf(path));
  const setTime = (): void => {
    const nowSeconds = host.clock.nowMs() / 1000;
    // After a failure the file has the time of the system.
    orUndefined(() => durable.setTime('partial.time', { descriptor, path }, nowSeconds));
  };
  return {
    ...{ path, descriptor, foundBytes, seen },
    note: (next) => {
      if (next === undefined) return forget();
      const text = `${JSON.stringify({ writ: 1, ...next })}\n`;
      durable.replaceFile('partial.note', noteOf(path), text, { mode: 0o600 });
    },
    take: (to) => {
      durable.linkNew('fetch.archive:link', path, to);
      forget();
      setTime();
    },
    keep: setTime,
    discard: () => {
      durable.discardFile('fetch.archive:discard', path);
      forget();
    },
  };
}

function openOrMake(
  durable: DurableFs,
  path: string,
  maxBytes: number,
): Pick<Partial, 'descriptor' | 'foundBytes'> {
  const found = lstatIfPresent(path);
  if (found !== undefined && isUsable(found, maxBytes)) {
    const descriptor = durable.openKept('partial.open', path, 0o600);
    const opened = fs.fstatSync(descriptor);
    if (isUsable(opened, maxBytes)) return { descriptor, foundBytes: opened.size };
    fs.closeSync(descriptor);
  }
  if (found !== undefined) durable.removeTree('partial.replace', path);
  return { descriptor: durable.openNew('partial.create', path, { mode: 0o600 }), foundBytes: 0 };
}

function isUsable(facts: PartialFacts, maxBytes: number): boolean {
  return isOwnPartial(facts, ourUid()) && facts.size <= maxBytes;
}

function ourUid(): number {
  return process.geteuid?.() ?? 0;
}

/**
 * Removes partial downloads that are too old or too many, and any other file; called while no cycle runs, and at the end of a cycle.
 * Errors of the disk are logged, and the next call tries again.
 */
export function sweepPartials(host: PartialsHost): void {
  const maxBytes = host.config.limits.maxArchiveBytes;
  const found = findPartials(host);
  const dropped = partialsToDrop(found, { nowMs: host.clock.nowMs(), maxBytes });
  removeAllBut(
    host,
    found.map(({ name }) => name).filter((name) => !dropped.includes(name)),
  );
}

/** Frees space on a full disk: partial downloads are the easiest files to get again. Errors of the disk are logged. @param but kept */
export function dropPartials(host: PartialsHost, but: readonly Digest[] = []): void {
  removeAllBut(host, but.map(digestHex));
}

const partialName = /^[0-9a-f]{64}$/;

function findPartials({ paths }: PartialsHost): FoundPartial[] {
  return listEntries(paths.partials).flatMap((entry) => {
    const stats = partialName.test(entry.name) ? lstatIfPresent(join(paths.partials, entry.name)) : undefined;
    if (stats === undefined || !isOwnPartial(stats, ourUid())) return [];
    return [{ name: entry.name, sizeBytes: stats.size, modifiedMs: stats.mtimeMs }];
  });
}

function removeAllBut({ paths, durable, log }: PartialsHost, kept: readonly string[]): void {
  const stays = new Set(kept.flatMap((one) => [one, noteOf(one)]));
  for (const { name, path } of listPaths(paths.partials)) {
    if (stays.has(name)) continue;
    try {
      durable.removeTree('partial.sweep', path);
    } catch (error) {
      if (!isWritError(error)) throw error;
      log.warn({ err: error, name }, 'a partial download could not be removed');
    }
  }
}

function noteOf(path: string): string {
  return `${path}.json`;
}

const maxNoteBytes = 4096;

/** @returns undefined for a damaged note: the rest is requested without a version */
function readNote(path: string): SeenVersion | undefined {
  const verdict = readSmallFile(path, { maxBytes: maxNoteBytes, links: 'refused' });
  if (verdict.kind !== 'read') return undefined;
  try {
    const { location, etag } = JSON.parse(verdict.bytes.toString('utf8')) as Record<string, unknown>;
    return typeof location === 'string' && typeof etag === 'string' ? { location, etag } : undefined;
  } catch {
    return undefined;
  }
}

// The directory of partials: one file for each signed digest, appended to while its bytes come, and a note beside it of which
// version a mirror said they are. Owns their names, and what may be there; who writes holds the lock of the state directory.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isWritError, orUndefined } from '../../core/errors.js';
import { type Digest, digestHex } from '../../core/names.js';
import type { DurableFs, OpenFile } from '../../platform/disk/durable-fs.js';
import { listEntries, listPaths, lstatIfPresent, readSmallFile } from '../../platform/read-file.js';
import type { SeenVersion } from '../../trust/download.js';
import type { Host } from '../state/host.js';
import { type FoundPartial, isOurs, type PartialFacts, partialsToDrop } from './partial-rules.js';

/** One of them, open for reading and writing. */
export interface Partial extends OpenFile {
  /** What of it was here when it was opened. */
  readonly foundBytes: number;
  /** Which version that is of. */
  readonly seen: SeenVersion | undefined;
  /** Which version comes from now on; flushes nothing, since the digest of the whole decides. */
  note(seen: SeenVersion | undefined): void;
  /**
   * It is complete: gives it a second name, in staging. Under the first one it waits for the end of the cycle: until it is kept with a
   * generation, the next run needs it. @throws WritError DISK_*
   */
  take(to: string): void;
  /** It was cut: the next run goes on with it. */
  keep(): void;
  /** It is of no use; what cannot be removed goes with the next sweep. */
  discard(): void;
}

export type PartialsHost = Pick<Host, 'paths' | 'durable' | 'clock' | 'log'> & {
  readonly config: { readonly limits: Pick<Host['config']['limits'], 'maxArchiveBytes'> };
};

/** What is signed of a file. */
export interface WholeFile {
  readonly length: number;
  readonly digest: Digest;
}

/**
 * Opens the partial of a file: as it is here, or a new one. What is no file of ours alone, or longer than was signed, is
 * removed.
 * @throws WritError DISK_*, PATH_MOUNTED
 */
export function openPartial(host: PartialsHost, { length, digest }: WholeFile): Partial {
  const { paths, durable } = host;
  const path = join(paths.partials, digestHex(digest));
  // Somebody may have removed it from under a running agent: no pull would come through until its next start.
  durable.ensureDirectory('prepare.private', paths.partials, 0o700);
  // A rename takes the place of anything else that is under the name of a note.
  if (lstatIfPresent(noteOf(path))?.isDirectory()) durable.removeTree('partial.replace', noteOf(path));
  const { descriptor, foundBytes } = openOrMake(durable, path, length);
  const seen = foundBytes > 0 ? readNote(noteOf(path)) : undefined;
  const forget = (): void => durable.discardFile('partial.forget', noteOf(path));
  const setTime = (): void => {
    const nowSeconds = host.clock.nowMs() / 1000;
    // One whose time cannot be set is as old as the system says.
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
  return isOurs(facts, ourUid()) && facts.size <= maxBytes;
}

function ourUid(): number {
  return process.geteuid?.() ?? 0;
}

/**
 * Removes what is too old, too much, or no partial, and what is kept under another name; for when no cycle runs, and at the end
 * of one. Never throws for the disk: it stays for the next time.
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

/** For a disk that is full: nothing else there is as easily had again. Never throws for the disk. */
export function dropPartials(host: PartialsHost, but: readonly Digest[] = []): void {
  removeAllBut(host, but.map(digestHex));
}

const partialName = /^[0-9a-f]{64}$/;

function findPartials({ paths }: PartialsHost): FoundPartial[] {
  return listEntries(paths.partials).flatMap((entry) => {
    const stats = partialName.test(entry.name) ? lstatIfPresent(join(paths.partials, entry.name)) : undefined;
    if (stats === undefined || !isOurs(stats, ourUid())) return [];
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

/** Of a note that is damaged nothing is believed: the rest is asked for without a version. */
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

// Counts the text lines that a release adds and removes compared with the head of its channel, for people. Reads the
// changed files from SOURCE and from the head's archive in this repository, within bounds. No decision depends on the
// numbers.
import * as fs from 'node:fs';
import { orUndefined, WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import type { TreeChange } from '../../core/release/change-rules.js';
import type { Manifest, ManifestFile } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { sourceName, unfilled } from '../../core/release/stamps.js';
import { countLineChanges } from '../../core/text/line-count.js';
import { readStoredFiles } from '../archive/archive-reader.js';
import { openSourceFile } from '../archive/source-files.js';
import type { SourceTree } from '../archive/source-tree.js';
import type { ListedRelease } from '../repository/listing.js';
import type { RepositoryLayout } from '../repository/repository-layout.js';

export interface ChangedLines {
  readonly added: number;
  readonly removed: number;
  /** The number of text files that were compared. */
  readonly files: number;
  /** The number of changed files beyond the bounds, which were not compared. */
  readonly notCounted: number;
}

export interface LineBounds {
  /** Larger files are not read. */
  readonly maxFileBytes: number;
  /** The sum for all files that are read, old and new. */
  readonly maxTotalBytes: number;
  /** The unpacked bytes of the archive, from its start, that are searched for old files. */
  readonly maxArchiveBytes: number;
}

export const defaultLineBounds: LineBounds = {
  maxFileBytes: 10_000_000,
  maxTotalBytes: 100_000_000,
  maxArchiveBytes: 500_000_000,
};

export interface LineOptions {
  readonly layout: RepositoryLayout;
  readonly head: ListedRelease;
  /** The manifest in the archive of the head. */
  readonly manifest: Manifest;
  readonly tree: SourceTree;
  readonly change: TreeChange;
  readonly limits: ArchiveLimits;
  readonly bounds?: LineBounds;
}

interface ChangedFile {
  /** In the archive of the head. */
  readonly old?: ManifestFile | undefined;
  /** In SOURCE. */
  readonly now?: ManifestFile | undefined;
}

/** @returns undefined where the archive of the head is missing or differs from its manifest. @throws WritError DISK_* */
export async function countChangedLines(options: LineOptions): Promise<ChangedLines | undefined> {
  const { layout, head, tree, limits } = options;
  const { chosen, notCounted } = chooseFiles(options);
  const counts = { added: 0, removed: 0, files: 0, notCounted };
  const count = ({ now }: ChangedFile, before: Buffer | undefined): void => {
    const after = now === undefined ? empty : orUndefined(() => readSourceFile(tree, now));
    if (before === undefined || after === undefined) counts.notCounted += 1;
    const lines = before && after && countLineChanges(before, after);
    if (lines === undefined) return;
    counts.added += lines.added;
    counts.removed += lines.removed;
    counts.files += 1;
  };
  const stored = new Map<string, ChangedFile & { readonly old: ManifestFile }>();
  for (const { old, now } of chosen) {
    if (old === undefined || old.sizeBytes === 0) count({ now }, empty);
    else stored.set(old.path, { old, now });
  }
  if (stored.size === 0) return counts;
  const wanted = new Map([...stored].map(([path, { old }]) => [path, old]));
  // The archive contains the files in the order of the manifest, so that one file of it is in memory at a time.
  const read = await readStoredFiles(layout, head, { limits, wanted }, (old) =>
    collect(old, (content) => count(stored.get(old.path) ?? {}, withoutStamps(head.release, old, content))),
  );
  return read === undefined ? undefined : counts;
}

const empty = Buffer.alloc(0);

function chooseFiles({ manifest, tree, change, bounds = defaultLineBounds }: LineOptions) {
  const { added, removed, changed } = change.difference;
  const places = placesIn(manifest);
  const now = new Map(tree.manifest.files.map((file) => [file.path, file]));
  let left = bounds.maxTotalBytes;
  const chosen: ChangedFile[] = [];
  const paths = [...changed, ...removed, ...added];
  for (const path of paths) {
    const old = places.get(path);
    const file: ChangedFile = { old: old?.file, now: now.get(path) };
    const sizes = [file.old?.sizeBytes ?? 0, file.now?.sizeBytes ?? 0];
    const bytes = sizes.reduce((sum, size) => sum + size, 0);
    const isFar = old !== undefined && old.endByte > bounds.maxArchiveBytes;
    if (isFar || bytes > left || sizes.some((size) => size >= bounds.maxFileBytes)) continue;
    left -= bytes;
    chosen.push(file);
  }
  return { chosen, notCounted: paths.length - chosen.length };
}

/** @returns the files of an archive by path, each with the offset of its end in the unpacked bytes, without headers */
function placesIn({ files }: Manifest): ReadonlyMap<string, { file: ManifestFile; endByte: number }> {
  let endByte = 0;
  return new Map(
    files.map((file) => {
      endByte += file.sizeBytes;
      return [file.path, { file, endByte }];
    }),
  );
}

function collect({ sizeBytes }: ManifestFile, done: (content: Buffer) => void): (chunk: Buffer) => void {
  const content = Buffer.alloc(sizeBytes);
  let length = 0;
  return (chunk) => {
    // The chunk's buffer is reused after this call.
    length += chunk.copy(content, length);
    if (length === sizeBytes) done(content);
  };
}

/** @returns the content before its stamps were filled in; undefined where the stamps differ from the signed ones */
function withoutStamps(release: ReleaseInfo, { path }: ManifestFile, content: Buffer): Buffer | undefined {
  const stamp = release.stamped?.stamps.find((one) => one.path === path);
  if (stamp === undefined) return content;
  return unfilled(content, stamp.at, { serial: String(release.serial), source: sourceName(release) });
}

/** @throws WritError SOURCE_REFUSED where the file changed since it was listed; it is not counted then */
function readSourceFile({ place }: SourceTree, { path, sizeBytes }: ManifestFile): Buffer {
  const { descriptor } = openSourceFile(place, path);
  try {
    const content = Buffer.alloc(sizeBytes);
    const length = fs.readSync(descriptor, content, 0, sizeBytes, 0);
    if (length === sizeBytes) return content;
    throw new WritError('SOURCE_REFUSED', `${path} became shorter`, { facts: { path } });
  } finally {
    fs.closeSync(descriptor);
  }
}

// Fills the stamps of a release into the chosen files of SOURCE: its serial, and the name of the tree before stamping.
// Never writes to SOURCE; the stamped content is kept in memory, and is bounded.
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { WritError } from '../../core/errors.js';
import type { ArchiveLimits } from '../../core/limits.js';
import { type Digest, digestFromHex } from '../../core/names.js';
import { encodeManifest, type ManifestFile, manifestDigest } from '../../core/release/manifest.js';
import {
  findMarks,
  maxStampedBytes,
  maxStampPlaces,
  maxStamps,
  type Stamped,
  sourceName,
  stampMarks,
} from '../../core/release/stamps.js';
import { changedSource, openSourceFile } from './source-files.js';
import type { PackedTree, SourceTree } from './source-tree.js';

/** A tree, and the files in it to stamp. */
export interface StampSource {
  readonly tree: SourceTree;
  /** The signed information about the stamps; absent where nothing is stamped. */
  readonly stamped?: Stamped;
  /** The unstamped content, by path. */
  readonly contents: ReadonlyMap<string, Buffer>;
}

/**
 * Reads the files to stamp and finds their placeholders. Writes nothing.
 * @param paths in the bundle; duplicates and the order have no effect
 * @returns the same tree, with the unstamped contents by path, and with `stamped`: the places of the placeholders, by path in
 *   ascending order. Without paths, `stamped` is absent and `contents` is empty
 * @throws WritError SOURCE_REFUSED for a path that SOURCE lacks, a file without a placeholder, a file that changed since it was
 *   read, and for too many files, bytes or placeholders
 */
export function readStamps(tree: SourceTree, paths: readonly string[]): StampSource {
  const names = [...new Set(paths)].sort();
  if (names.length === 0) return { tree, contents: new Map() };
  if (names.length > maxStamps) throw refused('too many files to stamp', maxStamps, names.length);
  const files = names.map((path) => fileOf(tree, path));
  const bytes = files.reduce((total, one) => total + one.sizeBytes, 0);
  if (bytes > maxStampedBytes) throw refused('too many bytes to stamp', maxStampedBytes, bytes);
  const contents = new Map(files.map((file) => [file.path, readMarked(tree, file)]));
  const stamps = files.map(({ path, sizeBytes, digest }) => {
    const at = findMarks(contents.get(path) ?? Buffer.alloc(0));
    if (at === undefined) throw refused(`placeholders in ${path}`, maxStampPlaces, maxStampPlaces + 1);
    return { path, length: sizeBytes, digest, at };
  });
  return { tree, contents, stamped: { source: tree.manifestDigest, stamps } };
}

function fileOf({ source, manifest }: SourceTree, path: string): ManifestFile {
  const file = manifest.files.find((one) => one.path === path);
  if (file !== undefined) return file;
  throw new WritError('SOURCE_REFUSED', `${source} has no file ${path} to stamp`, {
    facts: { source, path },
    hint: 'Give the path inside SOURCE, for example zones/block.rpz.',
  });
}

function readMarked({ place }: SourceTree, file: ManifestFile): Buffer {
  const { path, sizeBytes, digest } = file;
  const { descriptor } = openSourceFile(place, path);
  const content = Buffer.alloc(sizeBytes);
  try {
    fs.readSync(descriptor, content, 0, sizeBytes, 0);
  } finally {
    fs.closeSync(descriptor);
  }
  if (digestOf(content) !== digest) throw changedSource(path);
  if (content.includes(stampMarks.serial) || content.includes(stampMarks.source)) return content;
  throw new WritError('SOURCE_REFUSED', `${path} has neither ${stampMarks.serial} nor ${stampMarks.source}`, {
    facts: { path },
    hint: 'Write one of them where its readers can see it, for example in a comment or in a record of its own.',
  });
}

/** @returns the tree to pack for this serial. @throws WritError SOURCE_REFUSED where stamping exceeded a limit */
export function fillStamps(
  { tree, contents: before, stamped }: StampSource,
  { serial, limits }: { readonly serial: number; readonly limits: ArchiveLimits },
): PackedTree {
  if (stamped === undefined) return tree;
  const name = sourceName({ stamped, manifest: { digest: tree.manifestDigest } });
  const contents = new Map([...before].map(([path, content]) => [path, fill(content, serial, name)]));
  const files = tree.manifest.files.map((file): ManifestFile => {
    const content = contents.get(file.path);
    if (content === undefined) return file;
    if (content.length > limits.maxFileBytes)
      throw refused(`bytes in ${file.path}`, limits.maxFileBytes, content.length);
    return { ...file, sizeBytes: content.length, digest: digestOf(content) };
  });
  const manifestBytes = encodeManifest({ files });
  const digest = manifestDigest(manifestBytes);
  return { ...tree, manifest: { files }, manifestBytes, manifestDigest: digest, contents };
}

/** Replaces bytes in any encoding: latin1 maps each byte to one character. */
function fill(content: Buffer, serial: number, name: string): Buffer {
  const text = content.toString('latin1');
  return Buffer.from(
    text.replaceAll(stampMarks.serial, String(serial)).replaceAll(stampMarks.source, name),
    'latin1',
  );
}

function digestOf(content: Buffer): Digest {
  return digestFromHex(createHash('sha256').update(content).digest('hex')) as Digest;
}

function refused(what: string, expected: number, actual: number): WritError {
  return new WritError('SOURCE_REFUSED', what, { facts: { expected, actual } });
}

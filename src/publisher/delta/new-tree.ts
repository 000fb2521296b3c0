// The tree that a delta produces: one that was just packed from SOURCE, or an earlier release from its archive. Provides
// the content of its files; make-deltas uses it.
import * as fs from 'node:fs';
import { type ByteSource, bytesAsSource } from '../../core/delta/byte-source.js';
import type { DeltaRelease } from '../../core/delta/delta-format.js';
import type { WritError } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';
import type { ManifestFile } from '../../core/release/manifest.js';
import { changedSource, openSourceFile } from '../archive/source-files.js';
import type { PackedTree } from '../archive/source-tree.js';
import type { Base, BaseFiles } from './base-files.js';
import { fileAsSource } from './file-source.js';

export interface NewContent {
  readonly bytes: ByteSource;
  close(): void;
}

export interface NewTree extends DeltaRelease {
  readonly manifestDigest: Digest;
  /** Called once before `open`, with all files that will be opened. @returns false where they cannot be read */
  gather(wanted: readonly ManifestFile[], files: BaseFiles): Promise<boolean>;
  open(file: ManifestFile, files: BaseFiles): NewContent;
  /** Creates the error for a delta that does not produce the tree; without it, no delta is made then. */
  readonly changed?: () => WritError;
}

/**
 * @returns the tree. `open` reads a file from memory, or from SOURCE.
 * A file that changed since it was packed makes the read fail with SOURCE_REFUSED.
 */
export function treeOfSource(tree: PackedTree): NewTree {
  const { manifest, manifestBytes, manifestDigest, contents, source, place } = tree;
  return {
    ...{ manifest, manifestBytes, manifestDigest },
    gather: async () => true,
    open: ({ path, sizeBytes }) => {
      const content = contents?.get(path);
      if (content !== undefined) return { bytes: bytesAsSource(content), close: () => undefined };
      const { descriptor } = openSourceFile(place, path);
      const part = { descriptor, start: 0, length: sizeBytes };
      const bytes = fileAsSource(part, () => changedSource(path));
      return { bytes, close: () => fs.closeSync(descriptor) };
    },
    // A new delta is wrong only if SOURCE changed while it was read.
    changed: () => changedSource(source),
  };
}

/**
 * Makes the new side of a delta from a release that is in the repository. Reads nothing yet, and throws nothing.
 * @param release a release with its archive in the repository, and the manifest that was read there
 * @returns the tree, without `changed`. `gather` adds the files to the base files, and is false if the archive differs from its
 *   manifest; `open` reads them from there, and throws a RangeError for a file that was not gathered
 */
export function treeOfArchive(release: Base): NewTree {
  const { manifest, manifestBytes } = release.read;
  return {
    ...{ manifest, manifestBytes, manifestDigest: release.release.manifest.digest },
    gather: (wanted, files) => files.add(release, wanted),
    open: (file, files) => ({ bytes: files.source(file), close: () => undefined }),
  };
}

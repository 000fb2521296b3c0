// Creates a staged tree from an archive or a delta, and verifies each file against the signed manifest, and the stamps. The only
// function that creates a StagedBundle. It removes the tree after every error.
import { isWritError } from '../../core/errors.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { KeptCopy } from '../generations/kept-copies.js';
import { createTreeWriter, type TreeOptions, type TreeWriter } from './stage-tree.js';
import type { VerifiedManifest } from './verify-entries.js';
import { verifyStamps } from './verify-stamps.js';

declare const staged: unique symbol;

/** A staged tree in which each file matches the signed manifest. Not flushed yet. */
export interface StagedBundle {
  readonly bundle: string;
  readonly release: ReleaseInfo;
  readonly treePath: string;
  readonly manifest: Manifest;
  readonly stamped: ReleaseInfo['stamped'];
  readonly manifestBytes: Buffer;
  /** The files that it was made of, which become its retained copy. */
  readonly copy: KeptCopy;
  readonly target: SignedTarget;
  readonly [staged]: true;
}

export interface StagedTreeOptions {
  /** Path of the new tree in staging; it must not exist. */
  readonly directory: string;
  readonly fs: DurableFs;
  /** Mode of plain files, as 0644; directories and executables are derived from it. */
  readonly mode: number;
  readonly groupId?: number;
  /** Modification time of every file, epoch seconds. */
  readonly mtimeSeconds: number;
  readonly signal?: AbortSignal;
}

export interface StagedBundleOptions extends StagedTreeOptions {
  readonly target: SignedTarget;
  readonly copy: KeptCopy;
  /** Bytes of the copy that are in staging already. */
  readonly fetchedBytes: number;
}

/**
 * Creates the tree `directory` with `fill`, and verifies the stamps of the release. After an error of either it removes the
 * tree.
 * @param fill verifies the manifest first, then writes each of its files; resolves to the verified manifest
 * @returns the staged bundle with that manifest; its files are written and not flushed
 * @throws WritError MANIFEST_MISMATCH for wrong stamps; DISK_* if the tree cannot be written, or `directory` exists; and what
 *   `fill` throws, with the required space in a DISK_FULL
 */
export async function createStagedBundle(
  options: StagedBundleOptions,
  fill: (tree: TreeWriter) => Promise<VerifiedManifest>,
): Promise<StagedBundle> {
  const { target, directory, copy } = options;
  const { release } = target;
  const what = `${release.bundle} ${release.serial}`;
  const tree = createTreeWriter({
    ...options,
    treePath: directory,
    what,
    otherSpace: computeOtherSpace(options),
  });
  try {
    const { manifest, bytes: manifestBytes } = await fill(tree);
    verifyStamps(release, manifest, directory);
    const { bundle, stamped } = release;
    const treePath = directory;
    return { bundle, release, treePath, manifest, stamped, manifestBytes, copy, target } as StagedBundle;
  } catch (error) {
    const explained = tree.explain(error);
    tree.abandon();
    discard(options);
    throw explained;
  }
}

/** @returns the fetched bytes as written; and, still to be written, the retained copy with its manifest and provenance */
function computeOtherSpace({ fetchedBytes, target }: StagedBundleOptions): TreeOptions['otherSpace'] {
  const { release, vouchedBy } = target;
  const provenanceBytes = vouchedBy.chain.reduce((sum, { bytes }) => sum + bytes.length, 0);
  return {
    written: { bytes: fetchedBytes, inodes: 0 },
    pending: { bytes: fetchedBytes + release.manifest.length + provenanceBytes, inodes: 0 },
  };
}

/** Ignores a failed removal, because the first error is reported and the cycle removes its staging directory. */
function discard({ fs: durableFs, directory }: StagedTreeOptions): void {
  try {
    durableFs.removeTree('stage.discard', directory);
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}

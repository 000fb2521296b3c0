// A tree in staging, however it was made: held to its signed manifest file by file, and to its stamps. The only maker of a
// StagedBundle. Whatever goes wrong, the tree is removed.
import { isWritError } from '../../core/errors.js';
import type { Manifest } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { DurableFs } from '../../platform/disk/durable-fs.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { KeptCopy } from '../generations/kept-copies.js';
import { proveStamps } from './prove-stamps.js';
import { createTreeWriter, type TreeOptions, type TreeWriter } from './stage-tree.js';
import type { ProvenManifest } from './verify-entries.js';

declare const staged: unique symbol;

/** A tree in staging that is, file by file, what the signed manifest says. Not yet flushed. */
export interface StagedBundle {
  readonly bundle: string;
  readonly release: ReleaseInfo;
  readonly treePath: string;
  readonly manifest: Manifest;
  readonly stamped: ReleaseInfo['stamped'];
  readonly manifestBytes: Buffer;
  /** What it was made of, to be kept. */
  readonly copy: KeptCopy;
  readonly target: SignedTarget;
  readonly [staged]: true;
}

export interface TreePlace {
  /** The tree itself: a path in staging where nothing is yet. */
  readonly directory: string;
  readonly fs: DurableFs;
  /** Mode of plain files, as 0644; directories and executables are derived from it. */
  readonly mode: number;
  readonly groupId?: number;
  /** Modification time of every file, epoch seconds. */
  readonly mtimeSeconds: number;
  readonly signal?: AbortSignal;
}

export interface MakeOptions extends TreePlace {
  readonly target: SignedTarget;
  readonly copy: KeptCopy;
  /** Of the copy, what is in staging already. */
  readonly fetchedBytes: number;
}

/**
 * @param fill writes every file of the manifest, which it has proven before
 * @throws WritError MANIFEST_MISMATCH for stamps that are not true; DISK_*; and what `fill` throws
 */
export async function makeStagedBundle(
  options: MakeOptions,
  fill: (tree: TreeWriter) => Promise<ProvenManifest>,
): Promise<StagedBundle> {
  const { target, directory, copy } = options;
  const { release } = target;
  const what = `${release.bundle} ${release.serial}`;
  const tree = createTreeWriter({ ...options, treePath: directory, what, beside: spaceBeside(options) });
  try {
    const { manifest, bytes: manifestBytes } = await fill(tree);
    proveStamps(release, manifest, directory);
    const { bundle, stamped } = release;
    const treePath = directory;
    return { bundle, release, treePath, manifest, stamped, manifestBytes, copy, target } as StagedBundle;
  } catch (error) {
    const told = tree.explain(error);
    tree.abandon();
    discard(options);
    throw told;
  }
}

/** What was fetched is there already; the manifest and what vouches for it are kept with it. */
function spaceBeside({ fetchedBytes, target }: MakeOptions): TreeOptions['beside'] {
  const { release, vouchedBy } = target;
  const vouchers = vouchedBy.chain.reduce((sum, { bytes }) => sum + bytes.length, 0);
  return {
    written: { bytes: fetchedBytes, inodes: 0 },
    toCome: { bytes: fetchedBytes + release.manifest.length + vouchers, inodes: 0 },
  };
}

/** What made staging fail is the news, not that its rest could not be removed: the cycle removes its jail. */
function discard({ fs: durableFs, directory }: TreePlace): void {
  try {
    durableFs.removeTree('stage.discard', directory);
  } catch (error) {
    if (!isWritError(error)) throw error;
  }
}

// `writ publish --dry-run`: what a publish would do, by its own functions, without a key and without a write to the
// repository.
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ManifestDifference } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { packBundle } from '../archive/build-bundle.js';
import { readSourceTree, type SourceTree } from '../archive/source-tree.js';
import { findHead } from '../repository/listing.js';
import { requireText } from '../repository/metadata-content.js';
import { layoutOf } from '../repository/repository-layout.js';
import { readRepositoryState } from '../repository/repository-state.js';
import { compareToHead, describeRelease, type PublishOptions, sameRelease } from './publish.js';

export type PreviewResult =
  | { readonly kind: 'nothing-new'; readonly release: ReleaseInfo }
  | {
      readonly kind: 'would-publish';
      readonly serial: number;
      readonly previousSerial?: number;
      readonly tree: SourceTree;
      readonly archiveBytes: number;
      readonly difference?: ManifestDifference;
    };

/** @throws WritError SOURCE_REFUSED, REPOSITORY_INVALID, USAGE: as the publish itself would */
export async function previewPublish(options: PublishOptions): Promise<PreviewResult> {
  requireText(options.revision, 'the revision');
  const tree = readSourceTree(options.source, options.limits);
  const state = readRepositoryState(layoutOf(options.repository), options.keys.path);
  const release = sameRelease(state, tree, options);
  if (release !== undefined) return { kind: 'nothing-new', release };
  const head = findHead(state, options.bundle, options.channel);
  const { previous, ...compared } = await compareToHead(head, tree, options);
  return {
    kind: 'would-publish',
    serial: describeRelease(state, tree, options).serial,
    tree,
    archiveBytes: await packedBytes(tree, options),
    ...(previous === undefined ? {} : { previousSerial: previous.serial }),
    ...compared,
  };
}

/** Packs for real: whether hosts would take the archive shows only then. */
async function packedBytes(tree: SourceTree, { limits, durableFs }: PublishOptions): Promise<number> {
  const directory = fs.mkdtempSync(join(tmpdir(), 'writ-preview-'));
  try {
    const packed = await packBundle(tree, { archivePath: join(directory, 'archive'), limits, durableFs });
    return packed.archiveBytes;
  } finally {
    fs.rmSync(directory, { recursive: true, force: true });
  }
}

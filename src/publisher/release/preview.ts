// What a publish would do, without a key and without a write to the repository: for `writ publish --dry-run`.
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { diffManifests, type ManifestDifference } from '../../core/release/manifest.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { readManifestOf } from '../archive/archive-reader.js';
import { packBundle } from '../archive/build-bundle.js';
import { readSourceTree, type SourceTree } from '../archive/source-tree.js';
import { findHead, nextSerial } from '../repository/listing.js';
import { requireRevision } from '../repository/metadata-content.js';
import { layoutOf } from '../repository/repository-layout.js';
import { readRepositoryState } from '../repository/repository-state.js';
import type { PublishOptions } from './publish.js';

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
  requireRevision(options.revision);
  const { bundle, channel, limits } = options;
  const layout = layoutOf(options.repository);
  const tree = readSourceTree(options.source, limits);
  const state = readRepositoryState(layout, options.keys.path);
  const entry = findHead(state, bundle, channel);
  const head = entry?.release;
  if (head?.manifest.digest === tree.manifestDigest) return { kind: 'nothing-new', release: head };
  const before = entry && (await readManifestOf(layout, entry.file, entry.release, limits));
  return {
    kind: 'would-publish',
    serial: nextSerial(state, bundle, options.afterSerial),
    tree,
    archiveBytes: await packedBytes(tree, options),
    ...(head === undefined ? {} : { previousSerial: head.serial }),
    ...(before === undefined ? {} : { difference: diffManifests(before, tree.manifest) }),
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

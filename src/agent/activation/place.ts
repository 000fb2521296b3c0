// The step `flush`: renames staged trees to their final names, durably, and the generation last. No path that workers read
// leads to them yet. After a failure the placed trees return to staging.
import * as fs from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isWritError } from '../../core/errors.js';
import { createPolicyDirectories, placeGeneration } from '../generations/generations.js';
import { keepRelease } from '../generations/release-records.js';
import type { PlacedBundle } from '../staging/candidate.js';
import type { Host } from '../state/host.js';
import { treeDirectoryName } from '../state/paths.js';

export interface PlaceOptions {
  /** Staging directory of this attempt. */
  readonly staging: string;
  readonly generation: number;
}

/** Flushes all staged files by one `sync -f`, then renames them into place. @throws WritError DISK_* */
export async function placeCandidate(
  host: Host,
  candidate: readonly PlacedBundle[],
  options: PlaceOptions,
): Promise<void> {
  const { paths, durable } = host;
  const { staging, generation } = options;
  // Never repeat a failed flush: the second one may succeed although the data was lost.
  await durable.flushTree('flush.tree', staging);
  const placed: string[] = [];
  try {
    createPolicyDirectories(paths, durable);
    const trees = placeTrees(host, candidate, { ...options, onPlaced: (path) => placed.push(path) });
    durable.flushDirectory('flush.bundles', paths.bundles);
    durable.flushDirectory('flush.archives', paths.archives);
    placeGeneration(paths, durable, { number: generation, staging, trees });
  } catch (error) {
    returnToStaging(host, placed, staging);
    throw error;
  }
}

/** @returns the tree directory of each bundle in the new generation */
function placeTrees(
  { paths, durable, clock }: Host,
  candidate: readonly PlacedBundle[],
  options: PlaceOptions & { readonly onPlaced: (path: string) => void },
): ReadonlyMap<string, string> {
  const { staging, generation } = options;
  const trees = new Map<string, string>();
  for (const { selection, treePath, staged } of candidate) {
    const { name } = selection.bundle;
    trees.set(name, basename(treePath));
    if (staged === undefined) continue;
    const { serial, manifest } = staged.release;
    const place = join(paths.bundles, name, treeDirectoryName(serial, manifest.digest, generation));
    durable.ensureDirectory('flush.bundle', dirname(place), 0o755);
    options.onPlaced(place);
    durable.rename('flush.place', staged.treePath, place);
    trees.set(name, basename(place));
    keepRelease(paths, durable, {
      target: staged.target,
      copy: staged.copy,
      manifestBytes: staged.manifestBytes,
      staging,
      stagedAtMs: clock.nowMs(),
    });
  }
  return trees;
}

/**
 * Renames placed trees back into staging, which is removed when the cycle ends. No generation names them. The next start
 * removes trees for which the rename failed.
 */
function returnToStaging({ durable, paths, log }: Host, placed: readonly string[], staging: string): void {
  for (const path of placed.filter((one) => fs.existsSync(one))) {
    try {
      const bundle = basename(dirname(path));
      durable.rename('flush.take-back', path, join(staging, `unused-${bundle}-${basename(path)}`));
    } catch (error) {
      if (!isWritError(error)) throw error;
      log.warn({ err: error, path, policy: paths.policy }, 'an unreferenced tree is kept');
    }
  }
}

// The candidate as commands in the sandbox find it at the live policy path, before any of it is placed there: staged
// trees under the names that they will get, unchanged ones under their own.
import * as fs from 'node:fs';
import { basename } from 'node:path';
import type { Generation } from '../generations/generations.js';
import type { CandidateView, ViewedTree } from '../hooks/policy-view.js';
import type { CandidateBundle, CandidateOptions } from '../staging/candidate.js';
import { treeName } from '../state/paths.js';

/**
 * For checks and canaries.
 * @param options with the active generation as `current`; left out before the first activation
 */
export function candidateView(
  bundles: readonly CandidateBundle[],
  { generation, current }: Pick<CandidateOptions, 'generation'> & { readonly current?: Generation },
): CandidateView {
  const trees = bundles.map(({ selection, treePath, staged }): ViewedTree => {
    const directory =
      staged === undefined
        ? basename(treePath)
        : treeName(staged.release.serial, staged.release.manifest.digest, generation);
    return { bundle: selection.bundle.name, directory, source: fs.realpathSync(treePath) };
  });
  const active = current && {
    generation: current.number,
    trees: current.entries.map(
      ({ bundle, treeDirectory, treePath }): ViewedTree => ({
        bundle,
        directory: treeDirectory,
        source: fs.realpathSync(treePath),
      }),
    ),
  };
  return { kind: 'candidate', candidate: { generation, trees }, ...(active ? { active } : {}) };
}

// The content of the policy path inside the sandbox: the active policy itself, or the candidate together with the active generation.
// Every tree has its final path, so that a command judges exactly the tree that workers will use. Pure: makes a list of mounts.
import { dirname, join } from 'node:path';
import type { BoxMount } from '../../platform/process/bubblewrap.js';
import { bundleLink, generationLink } from '../state/paths.js';

export interface ViewedTree {
  readonly bundle: string;
  /** The name below `bundles/<bundle>/` that the tree has, or will have after its placement. */
  readonly directory: string;
  /** The current real path of the tree, as in staging. */
  readonly source: string;
}

export interface ViewedGeneration {
  readonly generation: number;
  readonly trees: readonly ViewedTree[];
}

/**
 * `live`: the policy path after the swap, for loaders and probes. `candidate`: the policy path as it would be after the swap, for
 * checks and canaries; `current` names the candidate.
 */
export type PolicyView = { readonly kind: 'live' } | CandidateView;

export interface CandidateView {
  readonly kind: 'candidate';
  readonly candidate: ViewedGeneration;
  /** Undefined before the first activation. */
  readonly active?: ViewedGeneration | undefined;
}

/**
 * @param policy real path of the policy directory
 * @returns the mounts in their order; the caller has created the parent directories of `policy`
 */
export function viewMounts(policy: string, view: PolicyView): BoxMount[] {
  if (view.kind === 'live') return [{ kind: 'read-only', from: policy, to: policy }];
  const { candidate, active } = view;
  const generations = [candidate, ...(active === undefined ? [] : [active])];
  const trees = new Map<string, string>();
  for (const { bundle, directory, source } of generations.flatMap((one) => one.trees)) {
    trees.set(join(policy, 'bundles', bundle, directory), source);
  }
  return [
    { kind: 'empty', path: policy },
    ...[...trees].flatMap(([to, from]): BoxMount[] => [
      { kind: 'directory', path: dirname(to) },
      { kind: 'read-only', from, to },
    ]),
    ...generations.flatMap((one) => generationMounts(policy, one)),
    ...(active === undefined ? [{ kind: 'directory', path: emptyGenerationPath(policy) } as const] : []),
    { kind: 'link', path: join(policy, 'current'), target: generationLink(candidate.generation) },
    { kind: 'sealed', path: policy },
  ];
}

/** @returns the path of an empty directory for `{current}` before the first activation; no generation has its number 0 */
export function emptyGenerationPath(policy: string): string {
  return join(policy, generationLink(0));
}

function generationMounts(policy: string, { generation, trees }: ViewedGeneration): BoxMount[] {
  const path = join(policy, generationLink(generation));
  return [
    { kind: 'directory', path },
    ...trees.map(
      ({ bundle, directory }): BoxMount => ({
        kind: 'link',
        path: join(path, bundle),
        target: bundleLink(bundle, directory),
      }),
    ),
  ];
}

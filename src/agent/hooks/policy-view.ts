// What a command in the sandbox finds at the live policy path: the live policy itself, or the candidate with the
// active generation beside it, every tree at its final name, so that what is judged is what will be used. Owns
// names and their order; it touches no file.
import { dirname, join } from 'node:path';
import type { BoxMount } from '../../platform/process/bubblewrap.js';
import { bundleLink, generationLink } from '../state/paths.js';

export interface ViewedTree {
  readonly bundle: string;
  /** Its name below `bundles/<bundle>/`, now or once it is placed. */
  readonly directory: string;
  /** Real path of where it lies now, as in staging. */
  readonly source: string;
}

export interface ViewedGeneration {
  readonly generation: number;
  readonly trees: readonly ViewedTree[];
}

/**
 * `live`: after the swap, for loaders and probes. `candidate`: before it, for checks and canaries; `current` then
 * names the candidate.
 */
export type PolicyView = { readonly kind: 'live' } | CandidateView;

export interface CandidateView {
  readonly kind: 'candidate';
  readonly candidate: ViewedGeneration;
  /** Left out before the first activation. */
  readonly active?: ViewedGeneration | undefined;
}

/**
 * @param policy real path of the policy directory
 * @returns how it is built; the caller has made its parents
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
    ...(active === undefined ? [{ kind: 'directory', path: nothingActive(policy) } as const] : []),
    { kind: 'link', path: join(policy, 'current'), target: generationLink(candidate.generation) },
    { kind: 'sealed', path: policy },
  ];
}

/** An empty directory: `{current}` before the first activation. No generation has this number. */
export function nothingActive(policy: string): string {
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

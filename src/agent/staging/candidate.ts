// What a cycle may swap in: bundles that were kept and bundles that are new, whole. Plain values; reads and writes nothing.
import { type BundleFiles, changedPaths, type PolicyFiles } from '../../core/release/affected-groups.js';
import type { ActiveBundle, ActivePolicy } from '../generations/generation-contents.js';
import type { Selection } from '../select/selection.js';
import type { StagedBundle } from './staged-bundle.js';
import type { WayOptions } from './ways.js';

/** One bundle of the candidate generation: staged now, or active already. */
export interface CandidateBundle extends PlacedBundle, BundleFiles {}

/** Of a bundle, what placing it needs. */
export interface PlacedBundle {
  readonly selection: Selection;
  readonly treePath: string;
  readonly staged?: StagedBundle;
}

export interface StagingOptions extends WayOptions {
  readonly staging: string;
  readonly mtimeSeconds: number;
  readonly signal: AbortSignal;
}

export interface CandidateOptions extends StagingOptions {
  /** The number that the candidate will have. */
  readonly generation: number;
}

/** @returns the bundles of a candidate generation: what is staged, and what is active already */
export function assembleCandidate(
  selections: readonly Selection[],
  staged: ReadonlyMap<string, StagedBundle>,
  active: ReadonlyMap<string, ActiveBundle>,
): CandidateBundle[] {
  return selections.flatMap((selection): CandidateBundle[] => {
    const tree = selection.kind === 'take' ? staged.get(selection.bundle.name) : undefined;
    if (tree !== undefined) {
      const { treePath, manifest, stamped } = tree;
      return [{ selection, treePath, manifest, stamped, staged: tree }];
    }
    const old = active.get(selection.bundle.name);
    if (old === undefined) return [];
    const { entry, manifest, stamped } = old;
    return [{ selection, treePath: entry.treePath, manifest, stamped }];
  });
}

/** Same bundles, same releases: activating it would change nothing that a worker can see. */
export function sameContent(
  candidate: readonly CandidateBundle[],
  active: ActivePolicy | undefined,
): boolean {
  if (active === undefined) return candidate.length === 0;
  if (candidate.length !== active.bundles.size) return false;
  return candidate.every(({ selection, staged }) => {
    const old = active.bundles.get(selection.bundle.name)?.record.release;
    if (old === undefined) return false;
    const { serial, manifest } = staged?.release ?? old;
    return serial === old.serial && manifest.digest === old.manifest.digest;
  });
}

/** @returns paths that a candidate changes, as changedPaths */
export function changedBy(active: PolicyFiles, candidate: readonly CandidateBundle[]): string[] {
  return changedPaths(active, new Map(candidate.map((one) => [one.selection.bundle.name, one])));
}

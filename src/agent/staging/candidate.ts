// The bundles of a candidate generation: those that were staged, and those that stay active.
import { type BundleFiles, changedPaths, type PolicyFiles } from '../../core/release/affected-groups.js';
import type { ActiveBundle, ActivePolicy } from '../generations/generation-contents.js';
import type { Selection } from '../select/selection.js';
import type { FetchStrategyOptions } from './fetch-strategy.js';
import type { StagedBundle } from './staged-bundle.js';

/** One bundle of the candidate generation: staged by this cycle, or active already. */
export interface CandidateBundle extends PlacedBundle, BundleFiles {}

/** The part of a bundle that the activation needs. */
export interface PlacedBundle {
  readonly selection: Selection;
  readonly treePath: string;
  readonly staged?: StagedBundle;
}

export interface StagingOptions extends FetchStrategyOptions {
  readonly staging: string;
  readonly mtimeSeconds: number;
  readonly signal: AbortSignal;
}

export interface CandidateOptions extends StagingOptions {
  /** Number of the candidate generation. */
  readonly generation: number;
}

/** @returns for each selection the staged tree or, without one, the active tree; nothing for a bundle with neither */
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

/** @returns true if serial and manifest of each bundle are the same, so that an activation would change nothing for a worker */
export function hasSameContent(
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

/** @returns the paths that a candidate changes, as changedPaths does */
export function listChangedPaths(active: PolicyFiles, candidate: readonly CandidateBundle[]): string[] {
  return changedPaths(active, new Map(candidate.map((one) => [one.selection.bundle.name, one])));
}

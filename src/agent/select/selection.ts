// The selection of each bundle in a cycle: a release, or the reason for none. Pure.
import type { BundleConfig } from '../../core/config/config.js';
import type { BundleResult } from '../../core/cycle/cycle-report.js';
import { outcomeOf, problemOf } from '../../core/cycle/problem.js';
import type { WritError } from '../../core/errors.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import type { Host } from '../state/host.js';

export type Selection =
  /** The active release stays, or there is still none; `result` has the reason. */
  | {
      readonly kind: 'keep';
      readonly bundle: BundleConfig;
      readonly result: BundleResult;
      /** The release that was tried in this cycle and failed. */
      readonly offered?: ReleaseInfo;
    }
  /** The offered release is fetched and tried. */
  | {
      readonly kind: 'take';
      readonly bundle: BundleConfig;
      readonly target: SignedTarget;
      readonly result: BundleResult;
    };

/** A set moves only together: when one member is held back, no other member is taken. */
export function holdBackSets(
  selections: readonly Selection[],
  sets: readonly (readonly string[])[],
): Selection[] {
  return selections.map((selection): Selection => {
    if (selection.kind === 'keep') return selection;
    const set = sets.find((names) => names.includes(selection.bundle.name)) ?? [];
    const culprit = selections.find(
      (other) =>
        other.kind === 'keep' && set.includes(other.bundle.name) && other.result.outcome !== 'unchanged',
    );
    return culprit === undefined ? selection : heldBackBy(selection, culprit.result);
  });
}

/** The result of a bundle that waits because another one of its set could not move. */
export function heldBackBy(selection: Selection, culprit: BundleResult): Selection {
  const { problem, outcome } = culprit;
  const result = { ...selection.result, outcome, ...(problem ? { problem } : {}) };
  return { kind: 'keep', bundle: selection.bundle, result };
}

export type Taken = Extract<Selection, { kind: 'take' }>;

/** @returns the selections that bring a new release */
export function taken(selections: readonly Selection[]): Taken[] {
  return selections.filter((one): one is Taken => one.kind === 'take');
}

/** @returns the selections in which these bundles, with their sets, keep their active release */
export function holdBack(
  host: Host,
  selections: readonly Selection[],
  refusals: ReadonlyMap<string, WritError>,
): Selection[] {
  return holdBackSets(
    selections.map((one) =>
      refusals.has(one.bundle.name) ? refuse(one, refusals.get(one.bundle.name)) : one,
    ),
    host.config.together,
  );
}

/** @returns the selection as one that keeps the active release, because of this error */
export function refuse(selection: Selection, error: unknown): Selection {
  const result: BundleResult = { ...selection.result, outcome: outcomeOf(error), problem: problemOf(error) };
  const offered = selection.kind === 'take' ? { offered: selection.target.release } : {};
  return { kind: 'keep', bundle: selection.bundle, result, ...offered };
}

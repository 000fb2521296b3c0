// The plan of a repair: the releases to stage again, the trees to keep, and the groups to notify. Decides from the scan; only
// `keepRecords` writes.
import type { BundleConfig } from '../../core/config/config.js';
import type { BundleResult, Problem } from '../../core/cycle/cycle-report.js';
import { outcomeOf, problemOf } from '../../core/cycle/problem.js';
import { isWritError, WritError } from '../../core/errors.js';
import { isLinkDamage } from '../../core/status/scrub-state.js';
import type { SignedTarget } from '../../trust/signed-target.js';
import { affectedGroups } from '../activation/affected-groups.js';
import type { Move } from '../activation/move.js';
import type { ExaminedBundle, ExaminedGeneration } from '../generations/examine.js';
import { findRepairTarget } from '../generations/recorded-target.js';
import { keepRelease } from '../generations/release-records.js';
import { expectedPermissions, verifyTree } from '../generations/verify-tree.js';
import type { Selection } from '../select/selection.js';
import type { PlacedBundle } from '../staging/candidate.js';
import type { StagedTrees } from '../staging/fetch-and-stage.js';
import type { StagedBundle } from '../staging/staged-bundle.js';
import type { Host } from '../state/host.js';
import { parseTreeName } from '../state/paths.js';
import type { ExaminedActive } from './examine-active.js';

/** A bundle of the active generation that is still configured; the next generation drops the others. */
export interface PolicyPart {
  readonly bundle: BundleConfig;
  readonly found: ExaminedBundle;
}

/**
 * @param wanted the scan of the generation that the repair completes
 * @returns the configured bundles of this generation, which are those of the next one
 * @throws WritError STATE_DAMAGED if none of them is configured
 */
export function partsOf(host: Host, wanted: ExaminedGeneration): PolicyPart[] {
  const parts = host.config.bundles.flatMap((bundle) => {
    const found = wanted.bundles.find((one) => one.bundle === bundle.name);
    return found === undefined ? [] : [{ bundle, found }];
  });
  if (parts.length > 0) return parts;
  throw new WritError('STATE_DAMAGED', `no known bundle of generation ${wanted.generation} is configured`, {
    facts: { generation: wanted.generation },
  });
}

/**
 * The counterpart of the `select` step of a cycle: each damaged bundle selects the release that it already has.
 * @param ask refreshes the metadata if a record is lost; called at most once
 */
export async function selectDamaged(
  host: Host,
  parts: readonly PolicyPart[],
  ask: () => Promise<void>,
): Promise<Selection[]> {
  let asked = false;
  const askOnce = async (): Promise<void> => {
    if (!asked) await ask();
    asked = true;
  };
  const selections: Selection[] = [];
  for (const { bundle, found } of parts) {
    const result = resultOf(bundle, found);
    if (found.tree.length + found.kept.length === 0) {
      selections.push({ kind: 'keep', bundle, result });
      continue;
    }
    try {
      const target = await findTarget(host, { bundle, found }, askOnce);
      selections.push({
        kind: 'take',
        bundle,
        target,
        result: { ...result, revision: target.release.revision },
      });
    } catch (error) {
      selections.push({
        kind: 'keep',
        bundle,
        result: { ...result, outcome: outcomeOf(error), problem: problemOf(error) },
      });
    }
  }
  return selections;
}

async function findTarget(
  host: Host,
  { bundle, found }: PolicyPart,
  ask: () => Promise<void>,
): Promise<SignedTarget> {
  const request = { bundle: bundle.name, channel: bundle.channel, release: found.release };
  try {
    return findRepairTarget(host, request);
  } catch (error) {
    if (!isWritError(error) || error.code !== 'STATE_DAMAGED') throw error;
    await ask();
    return findRepairTarget(host, request);
  }
}

function resultOf({ name, channel }: BundleConfig, { treeDirectory, record }: ExaminedBundle): BundleResult {
  const serial = parseTreeName(treeDirectory)?.serial;
  return {
    bundle: name,
    channel,
    outcome: 'unchanged',
    ...(serial === undefined ? {} : { fromSerial: serial, toSerial: serial }),
    ...(record === undefined ? {} : { revision: record.release.revision }),
  };
}

/** @returns the failures of bundles with a damaged tree; without a damaged tree, a failure is no reason to leave the generation */
export function failuresOfTrees(selections: readonly Selection[], parts: readonly PolicyPart[]): Problem[] {
  const damaged = parts.flatMap(({ found }) => (found.tree.length > 0 ? [found.bundle] : []));
  return failuresIn(selections.filter(({ bundle }) => damaged.includes(bundle.name)));
}

/** @returns the problems of releases that could not be selected or staged */
export function failuresIn(selections: readonly Selection[]): Problem[] {
  return selections.flatMap(({ kind, result }) =>
    kind === 'keep' && result.problem !== undefined ? [result.problem] : [],
  );
}

export interface RepairCandidate {
  readonly candidate: readonly PlacedBundle[];
  /** Intact trees with damaged retained files: only these files are written again. */
  readonly records: readonly StagedBundle[];
  /** Names of the bundles that get a new tree. */
  readonly replaced: readonly string[];
}

/**
 * Combines staged bundles and intact trees to the candidate of a repair. Scans trees with a lost manifest; writes nothing.
 * @param options the parts of the scan, the selections, and the staged bundles by name
 * @returns the candidate, in the order of `selections`. It has the staged tree for a damaged one, and the tree on disk
 *   otherwise, also for a damaged tree that could not be staged. `records` and `replaced` are empty if nothing is damaged
 * @throws WritError DISK_* for a read error that is no damage of the medium
 */
export async function repairCandidate(
  host: Host,
  { parts, selections, staged }: StagedTrees & { readonly parts: readonly PolicyPart[] },
): Promise<RepairCandidate> {
  const bundles = selections.flatMap((selection): PlacedBundle[] => {
    const { name } = selection.bundle;
    const made = staged.get(name);
    if (made !== undefined) return [{ selection, treePath: made.treePath, staged: made }];
    const found = parts.find((one) => one.found.bundle === name)?.found;
    return found === undefined ? [] : [{ selection, treePath: found.treePath }];
  });
  return replaceDamaged(
    host,
    parts.map((one) => one.found),
    bundles,
  );
}

/**
 * Replaces damaged trees by staged ones; an intact tree is never changed.
 * @param found the bundles on disk
 * @param bundles the bundles of the next generation, staged if possible
 */
export async function replaceDamaged(
  host: Host,
  found: readonly ExaminedBundle[],
  bundles: readonly PlacedBundle[],
): Promise<RepairCandidate> {
  const candidate: PlacedBundle[] = [];
  const records: StagedBundle[] = [];
  for (const one of bundles) {
    const { selection, staged } = one;
    const before = found.find(({ bundle }) => bundle === selection.bundle.name);
    if (before === undefined || (staged !== undefined && !(await isAsMade(host, before, staged)))) {
      candidate.push(one);
      continue;
    }
    candidate.push({ selection, treePath: before.treePath });
    if (staged !== undefined && before.kept.length > 0) records.push(staged);
  }
  const replaced = candidate.flatMap(({ staged }) => (staged === undefined ? [] : [staged.bundle]));
  return { candidate, records, replaced };
}

/** Whether the tree on disk is intact. With a lost manifest, compares it with the manifest of the staged release. */
async function isAsMade(host: Host, found: ExaminedBundle, { manifest }: StagedBundle): Promise<boolean> {
  if (found.manifest !== undefined || found.tree.length > 0) return found.tree.length === 0;
  const rights = expectedPermissions(host, found.bundle);
  return (await verifyTree(found.treePath, manifest, { contents: 'digests', ...rights })).length === 0;
}

/** Writes the retained files of these releases again, without their trees. */
export function keepRecords(host: Host, records: readonly StagedBundle[], staging: string): void {
  for (const { target, copy, manifestBytes } of records) {
    keepRelease(host.paths, host.durable, {
      target,
      copy,
      manifestBytes,
      staging,
      stagedAtMs: host.clock.nowMs(),
    });
  }
}

export interface RepairMove {
  readonly active: ExaminedActive;
  readonly to: number;
  /** Names of the bundles that get another tree. */
  readonly replaced: readonly string[];
  readonly staging: string;
  readonly signal: AbortSignal;
}

/**
 * The move to the replacement of a damaged generation. It notifies all groups that may have read damaged files, whatever their `when`,
 * because their content is unknown. A worker refusal is not remembered, because the worker already uses the release.
 */
export function moveToRepaired(host: Host, { active, to, replaced, staging, signal }: RepairMove): Move {
  const links = active.damage.filter(isLinkDamage);
  const bundles = [...replaced, ...links.flatMap(({ bundle = '' }) => bundle)];
  const affectsAll = links.some(({ bundle }) => bundle === undefined);
  const groups = affectsAll ? host.groups : affectedGroups(host, { bundles });
  return { kind: 'repair', from: active.current, to, groups, releases: [], staging, signal };
}

// What a repair is made of: which releases are staged again, which trees stay, who is notified. Decides from what was
// found on disk; only `keepRecords` writes.
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

/** One bundle that ought to be active, and is configured: others leave with the next generation. */
export interface PolicyPart {
  readonly bundle: BundleConfig;
  readonly found: ExaminedBundle;
}

/** @returns the bundles that the next generation has */
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
 * As the `select` step of a cycle: damaged bundles take the very release that they have.
 * @param ask brings the trusted metadata up to date, where a record is lost; called at most once
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
  const wish = { bundle: bundle.name, channel: bundle.channel, release: found.release };
  try {
    return findRepairTarget(host, wish);
  } catch (error) {
    if (!isWritError(error) || error.code !== 'STATE_DAMAGED') throw error;
    await ask();
    return findRepairTarget(host, wish);
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

/** @returns the damaged trees of which the release could not be had again; a whole tree is left for nothing */
export function failuresOfTrees(selections: readonly Selection[], parts: readonly PolicyPart[]): Problem[] {
  const damaged = parts.flatMap(({ found }) => (found.tree.length > 0 ? [found.bundle] : []));
  return failuresIn(selections.filter(({ bundle }) => damaged.includes(bundle.name)));
}

/** @returns what could not be had again */
export function failuresIn(selections: readonly Selection[]): Problem[] {
  return selections.flatMap(({ kind, result }) =>
    kind === 'keep' && result.problem !== undefined ? [result.problem] : [],
  );
}

export interface RepairCandidate {
  readonly candidate: readonly PlacedBundle[];
  /** Whole trees whose kept release was damaged: only that is written again. */
  readonly records: readonly StagedBundle[];
  /** Names of the bundles that get a new tree. */
  readonly replaced: readonly string[];
}

/** @param made the parts as they were found, and what of them was staged */
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
 * Takes what is damaged from what was staged; a tree that is complete is never touched.
 * @param found the bundles as they are
 * @param bundles what the next generation is to hold, staged where it could be
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

/** Where nobody knew what the tree must be, it is known by what was made. */
async function isAsMade(host: Host, found: ExaminedBundle, { manifest }: StagedBundle): Promise<boolean> {
  if (found.manifest !== undefined || found.tree.length > 0) return found.tree.length === 0;
  const rights = expectedPermissions(host, found.bundle);
  return (await verifyTree(found.treePath, manifest, { contents: 'digests', ...rights })).length === 0;
}

/** Writes what is kept of these releases again; their trees stay as they are. */
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
 * The move to what takes the damaged generation's place, for whoever may have read what was damaged; `when` is not asked,
 * for nobody knows what they have read. Nothing is remembered when a worker refuses: the release is the one that it uses
 * already.
 */
export function moveToRepaired(host: Host, { active, to, replaced, staging, signal }: RepairMove): Move {
  const links = active.damage.filter(isLinkDamage);
  const bundles = [...replaced, ...links.flatMap(({ bundle = '' }) => bundle)];
  const isAnybodys = links.some(({ bundle }) => bundle === undefined);
  const groups = isAnybodys ? host.groups : affectedGroups(host, { bundles });
  return { kind: 'repair', from: active.current, to, groups, releases: [], staging, signal };
}

// Plans a garbage collection from the disk and the ledger, and finds the processes that prevent a removal. Both the
// collection and `writ status` use it. Reads only.
import * as fs from 'node:fs';
import { basename } from 'node:path';

import { isSystemError, orUndefined } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';
import type { GenerationUser } from '../../core/status/mount-table.js';
import type { GenerationUserStatus } from '../../core/status/status.js';
import type { findGenerationUsers, GenerationUserReport } from '../../platform/process/find-processes.js';
import type { Clock } from '../../platform/time/clock.js';
import { allSettled } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import { readJournal } from '../state/journal.js';
import { releaseDirectoryName } from '../state/paths.js';
import {
  type CollectionFacts,
  type CollectionPlan,
  type KeepRules,
  planGenerationCollection,
  treeName,
} from './collection-rules.js';
import { notedLinks, retiredAtMs } from './generation-notes.js';
import { activeGenerationNumber, linkedTrees, listGenerations, listTrees } from './generations.js';
import { listReleases } from './release-records.js';

/** The parts of a host that this file reads; a host without a running agent has them too. */
export interface CollectableView extends Pick<Host, 'config' | 'paths' | 'ledger'> {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
}

export type FindGenerationUsers = typeof findGenerationUsers;

export interface CollectableGenerations {
  readonly rules: KeepRules;
  readonly plan: CollectionPlan;
  /** Generations and trees that are retained only because a process uses them. */
  readonly held: readonly GenerationUserStatus[];
  /** False if a limit ended the search for generation users; the plan then removes nothing. */
  readonly isComplete: boolean;
}

/**
 * Plans a collection. Searches other processes only if the rules alone allow a removal, because the search is slow.
 * @throws WritError STATE_DAMAGED if `current` or the journal cannot be read; errors of the system
 */
export async function findCollectableGenerations(
  host: CollectableView,
  find: FindGenerationUsers,
): Promise<CollectableGenerations> {
  const [facts, rules] = [readCollectionFacts(host), keepRules(host)];
  const candidatePlan = planGenerationCollection(facts, rules);
  if (candidatePlan.generations.length + candidatePlan.trees.length === 0)
    return { rules, plan: candidatePlan, held: [], isComplete: true };
  const report = await find({ policy: host.paths.policy, clock: host.clock });
  return planAroundUsers(facts, { ...rules, held: report.holders.map((one) => one.directory) }, report);
}

function planAroundUsers(
  facts: CollectionFacts,
  rules: KeepRules,
  { holders, isComplete }: GenerationUserReport,
): CollectableGenerations {
  const plan = planGenerationCollection(facts, rules);
  const held = holders.flatMap((one) => heldStatus(facts, plan, one) ?? []);
  if (isComplete) return { rules, plan, held, isComplete };
  return { rules, plan: { ...plan, generations: [], trees: [], releases: [] }, held, isComplete };
}

/** @returns undefined for a directory that a rule retains anyway */
function heldStatus(
  { generations, trees }: CollectionFacts,
  { heldBack }: CollectionPlan,
  { directory: held, ...holder }: GenerationUser,
): GenerationUserStatus | undefined {
  if (held.kind === 'generation') {
    const found = generations.find((one) => one.number === held.generation && heldBack.includes(one.number));
    return found && { generation: found.number, ...holder, sinceMs: found.leftAtMs };
  }
  const name = treeName(held);
  const found = generations.filter((one) => heldBack.includes(one.number) && one.trees.includes(name)).at(-1);
  if (found !== undefined) {
    return { generation: found.number, bundle: held.bundle, ...holder, sinceMs: found.leftAtMs };
  }
  const orphan = heldBack.includes(name) ? trees.find((tree) => tree.name === name) : undefined;
  return orphan && { bundle: held.bundle, ...holder, sinceMs: orphan.madeAtMs };
}

/** Lists the generations, trees and releases on disk. @throws WritError STATE_DAMAGED; errors of the system */
export function readCollectionFacts(host: CollectableView): CollectionFacts {
  const { paths } = host;
  return {
    generations: listGenerations(paths).map((number) => ({
      number,
      trees: treesOf(host, number),
      leftAtMs: retiredAtMs(host, number),
    })),
    trees: listTrees(paths).map(({ bundle, path }) => ({
      name: treeName({ bundle, tree: basename(path) }),
      madeAtMs: readTreeTime(path, host.clock),
    })),
    releases: listReleases(paths).map(({ bundle, name }) => `${bundle}/${name}`),
  };
}

/**
 * Lists the trees that the links of a generation name, and those that the ledger recorded for it. A damaged generation
 * keeps its recorded trees, and does not block the collection of the others for ever.
 * @returns as `bundle/directory`
 * @throws WritError STATE_DAMAGED if the generation is unreadable and the ledger has no record: it may be the active one
 */
function treesOf({ paths, ledger }: CollectableView, number: number): string[] {
  const noted = notedLinks(ledger.read(), number);
  if (noted === undefined) return linkedTrees(paths, number);
  const names = Object.entries(noted).map(([bundle, tree]) => treeName({ bundle, tree }));
  return [...new Set([...names, ...(orUndefined(() => linkedTrees(paths, number)) ?? [])])];
}

/**
 * @returns epoch milliseconds of the last inode change; 0 for a time in the future, which a wrong clock has set. Such a
 *   tree needs no grace period, because no worker was notified of a tree that no generation names.
 */
function readTreeTime(path: string, clock: Pick<Clock, 'nowMs'>): number {
  try {
    const { ctimeMs } = fs.statSync(path);
    return ctimeMs > clock.nowMs() ? 0 : Math.round(ctimeMs);
  } catch (error) {
    // A collection may have removed the tree while a status report is made.
    if (isSystemError(error, 'ENOENT')) return 0;
    throw error;
  }
}

function keepRules({ config, paths, ledger, clock }: CollectableView): KeepRules {
  const { previous, lastKnownGood, workers, lostContacts: lost = {} } = ledger.read();
  // A held release returns only by a command of an operator, which can fetch it again.
  const lostContacts = Object.entries(lost).filter(([, { state }]) => state !== 'held');
  // Entries of a group that was removed from the configuration never change again: they would retain a generation for ever.
  const groups = config.workers.map((group) => `${group.name}/`);
  const reported = Object.entries(workers)
    .filter(([key]) => groups.some((group) => key.startsWith(group)))
    .flatMap(([, one]) => [one.wanted, one.confirmed]);
  const journal = readJournal(paths);
  const named = [
    activeGenerationNumber(paths),
    previous,
    lastKnownGood,
    journal?.from,
    journal?.to,
    ...reported,
  ];
  return {
    named: new Set(named.filter((one) => one !== undefined)),
    settled: new Set([
      ...allSettled(ledger.read()).map(({ bundle, serial, manifest }) =>
        settledName(bundle, serial, manifest.digest),
      ),
      ...lostContacts.map(([bundle, { serial, manifestDigest }]) =>
        settledName(bundle, serial, manifestDigest),
      ),
    ]),
    newest: config.keep.generations,
    graceMs: config.keep.graceMs,
    nowMs: clock.nowMs(),
  };
}

function settledName(bundle: string, serial: number, manifestDigest: Digest): string {
  return `${bundle}/${releaseDirectoryName(serial, manifestDigest)}`;
}

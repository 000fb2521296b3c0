// What collection would remove just now, and who keeps it from that: facts of the disk and the ledger, and, where
// there is something to remove, of the other processes. Reads only; serves collection and `writ status`.
import * as fs from 'node:fs';
import { basename } from 'node:path';

import { isSystemError, orUndefined } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';
import type { GenerationUser } from '../../core/status/mount-table.js';
import type { GenerationUserStatus } from '../../core/status/status.js';
import type { findHolders, HolderReport } from '../../platform/process/find-processes.js';
import type { Clock } from '../../platform/time/clock.js';
import { allSettled } from '../settled/settled-ledger.js';
import type { Host } from '../state/host.js';
import { readJournal } from '../state/journal.js';
import { releaseDirectoryName } from '../state/paths.js';
import {
  type CollectionFacts,
  type CollectionPlan,
  type KeepRules,
  planCollection,
  treeName,
} from './collection-rules.js';
import { leftAtMs, notedLinks } from './generation-notes.js';
import { activeGenerationNumber, linkedTrees, listGenerations, listTrees } from './generations.js';
import { listReleases } from './release-records.js';

/** The parts of a host that are looked at; a host without an agent has them too. */
export interface CollectableView extends Pick<Host, 'config' | 'paths' | 'ledger'> {
  readonly clock: Pick<Clock, 'nowMs' | 'monotonicMs'>;
}

export type FindHolders = typeof findHolders;

export interface Collectable {
  readonly rules: KeepRules;
  readonly plan: CollectionPlan;
  /** What is kept for its holders alone. */
  readonly held: readonly GenerationUserStatus[];
  /** `no`: a bound ended the search for holders, so that the plan removes nothing. */
  readonly complete: 'yes' | 'no';
}

/**
 * Looks at other processes only when there is something to remove.
 * @throws WritError STATE_DAMAGED when `current` or the journal cannot be read; the system's errors
 */
export async function lookForCollectable(host: CollectableView, find: FindHolders): Promise<Collectable> {
  const [facts, rules] = [readFacts(host), keepRules(host)];
  const wish = planCollection(facts, rules);
  if (wish.generations.length + wish.trees.length === 0)
    return { rules, plan: wish, held: [], complete: 'yes' };
  const report = await find({ policy: host.paths.policy, clock: host.clock });
  return judge(facts, { ...rules, held: report.holders.map((one) => one.directory) }, report);
}

function judge(facts: CollectionFacts, rules: KeepRules, { holders, complete }: HolderReport): Collectable {
  const plan = planCollection(facts, rules);
  const held = holders.flatMap((one) => heldStatus(facts, plan, one) ?? []);
  if (complete === 'yes') return { rules, plan, held, complete };
  return { rules, plan: { ...plan, generations: [], trees: [], releases: [] }, held, complete };
}

/** @returns undefined for what is kept anyway */
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

/** What there is on disk. */
export function readFacts(host: CollectableView): CollectionFacts {
  const { paths } = host;
  return {
    generations: listGenerations(paths).map((number) => ({
      number,
      trees: treesOf(host, number),
      leftAtMs: leftAtMs(host, number),
    })),
    trees: listTrees(paths).map(({ bundle, path }) => ({
      name: treeName({ bundle, tree: basename(path) }),
      madeAtMs: madeAtMs(path, host.clock),
    })),
    releases: listReleases(paths).map(({ bundle, name }) => `${bundle}/${name}`),
  };
}

/**
 * What its links name and what the ledger notes of it. A harmed generation keeps what it had, and must not keep the host
 * from collecting the others for ever.
 * @throws WritError STATE_DAMAGED for one that cannot be read where nothing is noted of it: it may be the active one
 */
function treesOf({ paths, ledger }: CollectableView, number: number): string[] {
  const noted = notedLinks(ledger.read(), number);
  if (noted === undefined) return linkedTrees(paths, number);
  const names = Object.entries(noted).map(([bundle, tree]) => treeName({ bundle, tree }));
  return [...new Set([...names, ...(orUndefined(() => linkedTrees(paths, number)) ?? [])])];
}

/** A time ahead of the clock is of a clock that was wrong; nobody was notified of a tree that no generation names. */
function madeAtMs(path: string, clock: Pick<Clock, 'nowMs'>): number {
  try {
    const { ctimeMs } = fs.statSync(path);
    return ctimeMs > clock.nowMs() ? 0 : Math.round(ctimeMs);
  } catch (error) {
    // Removed meanwhile: a report may be made beside a collection.
    if (isSystemError(error, 'ENOENT')) return 0;
    throw error;
  }
}

function keepRules({ config, paths, ledger, clock }: CollectableView): KeepRules {
  const { previous, lastKnownGood, workers, lostContacts: lost = {} } = ledger.read();
  // One that is at fault comes back by a person alone, who can have it fetched again.
  const lostContacts = Object.entries(lost).filter(([, { state }]) => state !== 'held');
  // Of a group that is not configured any more nobody reports, and its last word would be kept for ever.
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

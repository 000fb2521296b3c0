// Decides which generations, trees and releases a garbage collection may remove, from facts of the disk, the ledger and
// the generation users. Pure functions.
import type { CollectableDirectory } from '../../core/status/mount-table.js';

export interface GenerationFact {
  readonly number: number;
  /** As `bundle/directory`, as its links name them. A linked tree is retained even if it is damaged. */
  readonly trees: readonly string[];
  /** Epoch milliseconds at which it stopped being active; the time of its creation if it never was active. */
  readonly leftAtMs: number;
}

export interface TreeFact {
  /** As `bundle/directory`. */
  readonly name: string;
  readonly madeAtMs: number;
}

export interface CollectionFacts {
  /** Ascending. */
  readonly generations: readonly GenerationFact[];
  readonly trees: readonly TreeFact[];
  /** As `bundle/release`. */
  readonly releases: readonly string[];
}

export interface KeepRules {
  /** The generations that are active, previous or last known good, or that a worker or the journal refers to. */
  readonly named: ReadonlySet<number>;
  /** Settled releases as `bundle/release`. One tree of each is always retained. */
  readonly settled: ReadonlySet<string>;
  /** Number of the newest generations that are always retained. */
  readonly newest: number;
  readonly graceMs: number;
  readonly nowMs: number;
  /** Directories that processes use; left out before the search for generation users. */
  readonly held?: readonly CollectableDirectory[];
}

export interface CollectionPlan {
  readonly generations: readonly number[];
  readonly trees: readonly string[];
  readonly releases: readonly string[];
  /** Generations and trees that are retained only because a process uses them. */
  readonly heldBack: readonly (number | string)[];
  /** Epoch milliseconds at which the next grace period ends; left out if none is running. */
  readonly nextDueMs?: number;
}

/**
 * Plans one collection.
 * @returns the removable generations, trees and releases. The caller removes them in this order, so that no generation
 *   ever refers to a removed tree.
 */
export function planGenerationCollection(facts: CollectionFacts, rules: KeepRules): CollectionPlan {
  const ruled = findRetainedGenerations(facts, rules);
  const held = findUsedGenerations(facts, rules.held ?? [], ruled);
  const kept = facts.generations.filter(({ number }) => ruled.has(number) || held.has(number));
  const used = new Set([...kept.flatMap((one) => one.trees), ...settledTrees(facts, rules)]);
  const heldTrees = new Set(rules.held?.flatMap((one) => (one.kind === 'tree' ? [treeName(one)] : [])));
  const [unused, young] = split(
    facts.trees.filter((tree) => !used.has(tree.name)),
    // The grace period of a generation covers its trees. A crash may leave a tree without a generation, which has its own.
    (tree) => isOver(tree.madeAtMs, rules) || wasReferred(facts, tree.name),
  );
  const trees = unused.filter((tree) => !heldTrees.has(tree.name)).map((tree) => tree.name);
  const removed = new Set(trees);
  const left = facts.trees.map((tree) => tree.name).filter((name) => !removed.has(name));
  // Includes releases of linked trees that are missing on disk: the repair of such a generation needs the release.
  const usedReleases = new Set([...left, ...used].map(releaseOf));
  const nextDueMs = nextDue(facts, rules, young);
  return {
    generations: facts.generations
      .map((one) => one.number)
      .filter((number) => !ruled.has(number) && !held.has(number)),
    trees,
    releases: facts.releases.filter((one) => !usedReleases.has(one)),
    heldBack: [...held, ...unused.map((tree) => tree.name).filter((name) => heldTrees.has(name))],
    ...(nextDueMs === undefined ? {} : { nextDueMs }),
  };
}

/** @returns the newest tree of each settled release; one tree is enough to create a generation */
function settledTrees({ trees }: CollectionFacts, { settled }: KeepRules): string[] {
  const newest = new Map<string, string>();
  for (const { name } of trees) {
    const release = releaseOf(name);
    const known = newest.get(release);
    if (settled.has(release) && (known === undefined || treeNumber(known) < treeNumber(name)))
      newest.set(release, name);
  }
  return [...newest.values()];
}

function treeNumber(tree: string): number {
  return Number(tree.slice(tree.lastIndexOf('.') + 1));
}

/** @returns the generations that the rules retain without regard to generation users */
function findRetainedGenerations({ generations }: CollectionFacts, rules: KeepRules): ReadonlySet<number> {
  const newest = new Set(generations.slice(-rules.newest).map((one) => one.number));
  const kept = generations.filter(
    (one) => rules.named.has(one.number) || newest.has(one.number) || !isOver(one.leftAtMs, rules),
  );
  return new Set(kept.map((one) => one.number));
}

/**
 * @returns the generations that processes use. A process that uses a tree retains only the newest generation with that
 *   tree, and none if a rule retains one. Otherwise a tree that never changes would retain every generation.
 */
function findUsedGenerations(
  { generations }: CollectionFacts,
  held: readonly CollectableDirectory[],
  ruled: ReadonlySet<number>,
): ReadonlySet<number> {
  const numbers = held.flatMap((one) => (one.kind === 'generation' ? [one.generation] : []));
  const found = new Set(
    generations.map((one) => one.number).filter((number) => numbers.includes(number) && !ruled.has(number)),
  );
  for (const one of held) {
    if (one.kind !== 'tree') continue;
    const having = generations
      .filter(({ trees }) => trees.includes(treeName(one)))
      .map(({ number }) => number);
    const newest = having.at(-1);
    if (newest !== undefined && !having.some((number) => ruled.has(number) || found.has(number)))
      found.add(newest);
  }
  return found;
}

/** The tree `bundle/serial-digest.n` was unpacked from the release `bundle/serial-digest`. */
function releaseOf(tree: string): string {
  return tree.replace(/\.[0-9]+$/, '');
}

/** @returns the name of a tree that is unique on a host: `BUNDLE/TREE` */
export function treeName({ bundle, tree }: { readonly bundle: string; readonly tree: string }): string {
  return `${bundle}/${tree}`;
}

function isOver(sinceMs: number, { nowMs, graceMs }: KeepRules): boolean {
  return nowMs - sinceMs >= graceMs;
}

function wasReferred({ generations }: CollectionFacts, tree: string): boolean {
  return generations.some(({ trees }) => trees.includes(tree));
}

function nextDue(
  { generations }: CollectionFacts,
  rules: KeepRules,
  youngTrees: readonly TreeFact[],
): number | undefined {
  const newest = new Set(generations.slice(-rules.newest).map((one) => one.number));
  const waiting = generations
    .filter((one) => !rules.named.has(one.number) && !newest.has(one.number) && !isOver(one.leftAtMs, rules))
    .map((one) => one.leftAtMs);
  const times = [...waiting, ...youngTrees.map((tree) => tree.madeAtMs)];
  return times.length === 0 ? undefined : Math.min(...times) + rules.graceMs;
}

function split<T>(all: readonly T[], test: (one: T) => boolean): readonly [T[], T[]] {
  return [all.filter(test), all.filter((one) => !test(one))];
}

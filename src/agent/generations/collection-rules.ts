// What collection may remove: old generations, trees that no kept generation refers to, and releases of neither. A
// verdict over facts of the disk, the ledger and who holds what. Pure; removes nothing.
import type { CollectableDirectory } from '../../core/status/mount-table.js';

export interface GenerationFact {
  readonly number: number;
  /** As `bundle/directory`, by the names of its links: what a link names is kept, whole or not. */
  readonly trees: readonly string[];
  /** Epoch milliseconds: when it stopped being current, or was made where it never was. */
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
  /** Active, previous, last known good, what a worker reports, what a journal names. */
  readonly named: ReadonlySet<number>;
  /** As `bundle/release`: the settled releases that are remembered, each of which has a tree on disk whatever else is removed. */
  readonly settled: ReadonlySet<string>;
  /** How many of the newest stay in any case. */
  readonly newest: number;
  readonly graceMs: number;
  readonly nowMs: number;
  /** Left out while nobody has looked. */
  readonly held?: readonly CollectableDirectory[];
}

export interface CollectionPlan {
  readonly generations: readonly number[];
  readonly trees: readonly string[];
  readonly releases: readonly string[];
  /** Generations and trees that would be removed if nobody held them. */
  readonly heldBack: readonly (number | string)[];
  /** Epoch milliseconds: when the next grace runs out; left out when none is running. */
  readonly nextDueMs?: number;
}

/** @returns what may be removed, to be removed in this order: a generation never refers to what is gone */
export function planCollection(facts: CollectionFacts, rules: KeepRules): CollectionPlan {
  const ruled = ruledGenerations(facts, rules);
  const held = heldGenerations(facts, rules.held ?? [], ruled);
  const kept = facts.generations.filter(({ number }) => ruled.has(number) || held.has(number));
  const used = new Set([...kept.flatMap((one) => one.trees), ...settledTrees(facts, rules)]);
  const heldTrees = new Set(rules.held?.flatMap((one) => (one.kind === 'tree' ? [treeName(one)] : [])));
  const [unused, young] = split(
    facts.trees.filter((tree) => !used.has(tree.name)),
    // A generation's grace covers its trees: this is for one that a crash left without any.
    (tree) => isOver(tree.madeAtMs, rules) || wasReferred(facts, tree.name),
  );
  const trees = unused.filter((tree) => !heldTrees.has(tree.name)).map((tree) => tree.name);
  const removed = new Set(trees);
  const left = facts.trees.map((tree) => tree.name).filter((name) => !removed.has(name));
  // Those of the links too: a kept generation whose tree is lost is repaired from the release.
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

/** Of each settled release the newest tree: one is enough to make a generation from. */
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

/** What the rules keep, whoever holds what. */
function ruledGenerations({ generations }: CollectionFacts, rules: KeepRules): ReadonlySet<number> {
  const newest = new Set(generations.slice(-rules.newest).map((one) => one.number));
  const kept = generations.filter(
    (one) => rules.named.has(one.number) || newest.has(one.number) || !isOver(one.leftAtMs, rules),
  );
  return new Set(kept.map((one) => one.number));
}

/**
 * Who holds a generation holds it. Who holds a tree holds the newest generation that has it, and none when one that is
 * kept anyway has it: a tree that never changes must not keep every generation that ever had it.
 */
function heldGenerations(
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

/** `bundle/serial-digest.n` was unpacked from the release `bundle/serial-digest`. */
function releaseOf(tree: string): string {
  return tree.replace(/\.[0-9]+$/, '');
}

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

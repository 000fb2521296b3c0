// What each generation holds, noted in the ledger before the link moves to it: a link that somebody turned to another
// tree of ours looks well in itself, and is found by this alone. Writes no file.
import { orUndefined } from '../../core/errors.js';
import type { Ledger } from '../state/ledger.js';
import type { HostPaths } from '../state/paths.js';
import { listGenerations, readGeneration } from './generations.js';

/** Directory of each tree, by bundle. */
export type NotedLinks = Readonly<Record<string, string>>;

/** @returns undefined for a generation of the time before they were noted */
export function notedLinks(ledger: Ledger, generation: number): NotedLinks | undefined {
  return ledger.links?.[String(generation)];
}

/**
 * Notes what a generation holds that is whole now, and forgets those that are gone. What is noted already stays: a
 * generation never changes.
 */
export function noteLinks(paths: HostPaths, ledger: Ledger, generation: number): Ledger {
  const kept = new Set([...listGenerations(paths), generation, ledger.previous, ledger.settled].map(String));
  const links = Object.fromEntries(Object.entries(ledger.links ?? {}).filter(([number]) => kept.has(number)));
  const known = links[generation] ?? linksOf(paths, generation);
  return known === undefined ? ledger : { ...ledger, links: { ...links, [generation]: known } };
}

function linksOf(paths: HostPaths, generation: number): NotedLinks | undefined {
  // A swap to what cannot be read ends elsewhere; here nothing is known of it.
  const found = orUndefined(() => readGeneration(paths, generation));
  return found && Object.fromEntries(found.entries.map((one) => [one.bundle, one.treeDirectory]));
}

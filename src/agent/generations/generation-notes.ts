// What the ledger notes of each generation: what it holds, before the link moves to it, for a link that somebody turned to
// another tree of ours looks well in itself; and when it stopped being current, from which its grace is counted. Writes no
// file.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { orUndefined } from '../../core/errors.js';
import type { Host } from '../state/host.js';
import { type Ledger, ledgerSection } from '../state/ledger.js';
import type { HostPaths } from '../state/paths.js';
import { listGenerations, readGeneration } from './generations.js';

const changeNotes = ledgerSection('links', 'retired');

/** Directory of each tree, by bundle. */
export type NotedLinks = Readonly<Record<string, string>>;

/** @returns undefined for a generation of the time before they were noted */
export function notedLinks(ledger: Ledger, generation: number): NotedLinks | undefined {
  return ledger.links?.[String(generation)];
}

/**
 * Notes what a generation holds that is complete now, and forgets those that are gone. What is noted already stays: a
 * generation never changes.
 */
export function noteLinks(paths: HostPaths, ledger: Ledger, generation: number): Ledger {
  const kept = new Set([...listGenerations(paths), generation, ledger.previous, ledger.settled].map(String));
  const links = Object.fromEntries(Object.entries(ledger.links ?? {}).filter(([number]) => kept.has(number)));
  const known = links[generation] ?? linksOf(paths, generation);
  return known === undefined ? ledger : changeNotes(ledger, { links: { ...links, [generation]: known } });
}

function linksOf(paths: HostPaths, generation: number): NotedLinks | undefined {
  // A swap to what cannot be read ends elsewhere; here nothing is known of it.
  const found = orUndefined(() => readGeneration(paths, generation));
  return found && Object.fromEntries(found.entries.map((one) => [one.bundle, one.treeDirectory]));
}

/** More generations than anybody keeps; of more, the newest count. */
const maxRetired = 4096;

export interface Change {
  /** Stops being current; absent at a first activation. */
  readonly left: number | undefined;
  /** Becomes current; absent when there is none any more. */
  readonly current: number | undefined;
}

/** @returns the ledger with the change noted; entries of generations that are gone are left out */
export function withRetired(
  host: Pick<Host, 'paths' | 'clock'>,
  ledger: Ledger,
  { left, current }: Change,
): Ledger {
  const noted: Record<string, number> = {
    ...ledger.retired,
    ...(left === undefined ? {} : { [left]: host.clock.nowMs() }),
  };
  const known = new Set(listGenerations(host.paths).slice(-maxRetired));
  const entries = Object.entries(noted).filter(([key]) => known.has(Number(key)) && Number(key) !== current);
  return changeNotes(ledger, { retired: Object.fromEntries(entries) });
}

/** @returns epoch milliseconds: when it stopped being current; when it was made, for one that never was */
export function leftAtMs({ paths, ledger }: Pick<Host, 'paths' | 'ledger'>, generation: number): number {
  const noted = ledger.read().retired?.[generation];
  // ctime, not mtime: nothing sets it but the making. A link in its place is not followed: it may lead nowhere.
  return noted ?? Math.round(fs.lstatSync(join(paths.generations, String(generation))).ctimeMs);
}

/** Clocks of the kernel's files and of this process are not read at the same instant. */
const toleranceMs = 60_000;

/**
 * A time ahead of the clock is of a clock that was wrong, and would be kept for years: its grace begins again.
 * @param generations those whose grace matters
 * @returns the same ledger when there is none
 */
export function withoutFuture(
  host: Pick<Host, 'paths' | 'ledger' | 'clock'>,
  generations: readonly number[],
): Ledger {
  const ledger = host.ledger.read();
  const nowMs = host.clock.nowMs();
  const ahead = generations.filter((one) => leftAtMs(host, one) > nowMs + toleranceMs);
  if (ahead.length === 0) return ledger;
  const again = Object.fromEntries(ahead.map((one) => [one, nowMs]));
  return changeNotes(ledger, { retired: { ...ledger.retired, ...again } });
}

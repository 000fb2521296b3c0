// The records of each generation in the ledger. Its links are recorded before `current` moves to it, because a link that was
// changed to another tree of Writ is valid in itself. The time at which it stopped being active begins its grace period.
// Writes no file.
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

/** @returns undefined for a generation that an older Writ created, which recorded no links */
export function notedLinks(ledger: Ledger, generation: number): NotedLinks | undefined {
  return ledger.links?.[String(generation)];
}

/**
 * Records the links of a generation that is complete on disk, and drops the records of removed generations. An existing
 * record stays, because a generation never changes.
 * @returns the same ledger if the generation is unreadable
 */
export function noteLinks(paths: HostPaths, ledger: Ledger, generation: number): Ledger {
  const kept = new Set([...listGenerations(paths), generation, ledger.previous, ledger.settled].map(String));
  const links = Object.fromEntries(Object.entries(ledger.links ?? {}).filter(([number]) => kept.has(number)));
  const known = links[generation] ?? linksOf(paths, generation);
  return known === undefined ? ledger : changeNotes(ledger, { links: { ...links, [generation]: known } });
}

function linksOf(paths: HostPaths, generation: number): NotedLinks | undefined {
  // The swap itself reports an unreadable generation.
  const found = orUndefined(() => readGeneration(paths, generation));
  return found && Object.fromEntries(found.entries.map((one) => [one.bundle, one.treeDirectory]));
}

/** Bound of the ledger, above any realistic number of generations. Only the newest are recorded. */
const maxRetired = 4096;

export interface CurrentChange {
  /** The generation that stops being active; undefined at a first activation. */
  readonly left: number | undefined;
  /** The generation that becomes active; undefined if none is active any more. */
  readonly current: number | undefined;
}

/** @returns the ledger with the time of the change, without entries of removed generations and of the active one */
export function withRetired(
  host: Pick<Host, 'paths' | 'clock'>,
  ledger: Ledger,
  { left, current }: CurrentChange,
): Ledger {
  const noted: Record<string, number> = {
    ...ledger.retired,
    ...(left === undefined ? {} : { [left]: host.clock.nowMs() }),
  };
  const known = new Set(listGenerations(host.paths).slice(-maxRetired));
  const entries = Object.entries(noted).filter(([key]) => known.has(Number(key)) && Number(key) !== current);
  return changeNotes(ledger, { retired: Object.fromEntries(entries) });
}

/**
 * @returns epoch milliseconds at which the generation stopped being active; the time of its creation if it never was
 * @throws errors of the system if it does not exist
 */
export function retiredAtMs({ paths, ledger }: Pick<Host, 'paths' | 'ledger'>, generation: number): number {
  const noted = ledger.read().retired?.[generation];
  // ctime, because only the creation sets it here. lstat, because a link in place of the directory may have no target.
  return noted ?? Math.round(fs.lstatSync(join(paths.generations, String(generation))).ctimeMs);
}

/** Tolerance, because the file time of the kernel and the clock of this process are not read at the same instant. */
const toleranceMs = 60_000;

/**
 * Restarts the grace period of each generation that has a time in the future. A wrong clock has set such a time, which
 * would retain the generation for years.
 * @param generations the numbers to check
 * @returns the same ledger if no time is in the future
 */
export function resetFutureTimes(
  host: Pick<Host, 'paths' | 'ledger' | 'clock'>,
  generations: readonly number[],
): Ledger {
  const ledger = host.ledger.read();
  const nowMs = host.clock.nowMs();
  const ahead = generations.filter((one) => retiredAtMs(host, one) > nowMs + toleranceMs);
  if (ahead.length === 0) return ledger;
  const again = Object.fromEntries(ahead.map((one) => [one, nowMs]));
  return changeNotes(ledger, { retired: { ...ledger.retired, ...again } });
}

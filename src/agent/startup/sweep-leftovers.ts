// What a crash left outside the journal's story, swept at every start: staging areas, temporary names, trees that no
// generation was ever made for, kept releases that were being replaced. A leftover that cannot be removed is said and
// stays: it never keeps the agent from starting, and blocks no later name.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { isWritError } from '../../core/errors.js';
import { isTemporaryName } from '../../platform/disk/durable-fs.js';
import { listEntries } from '../../platform/read-file.js';
import { activeGenerationNumber, listGenerations, listTrees } from '../generations/generations.js';
import { settleReplacedReleases } from '../generations/release-records.js';
import { sweepPartials } from '../partials/partials.js';
import type { Host } from '../state/host.js';
import { readJournal } from '../state/journal.js';
import { parseTreeName } from '../state/paths.js';

/** Sweeps. Runs before anything is read of what it may put back; the caller holds the lock. */
export function sweepLeftovers(host: Host): void {
  const { paths, durable } = host;
  const each = (paths: readonly string[], sweep: (path: string) => void): void => {
    for (const path of paths) tolerate(host, path, () => sweep(path));
  };
  // First: what is in staging may be an older copy of what has to go back.
  tolerate(host, paths.archives, () => settleReplacedReleases(paths, durable));
  each(inside(paths.staging), (path) => durable.removeTree('recover.sweep-staging', path));
  sweepPartials(host);
  each(temporaryLinks(paths.policy), (path) => durable.removeFile('recover.sweep-link', path));
  for (const directory of [paths.state, paths.trust, join(paths.trust, 'roots'), paths.run]) {
    const left = inside(directory, isTemporaryName);
    each(left, (path) => durable.removeFile('recover.sweep-file', path));
  }
  each(unusedTrees(host), (path) => durable.removeTree('recover.sweep-tree', path));
}

/** The disk's refusal is noted; what is no error of the disk goes on. */
function tolerate(host: Host, path: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error, path }, 'a leftover of an earlier run could not be removed');
  }
}

function inside(directory: string, isLeft: (name: string) => boolean = () => true): string[] {
  return listEntries(directory)
    .map(({ name }) => name)
    .filter(isLeft)
    .map((name) => join(directory, name));
}

/** Beside `current`, of whatever cycle; only links: Writ removes nothing that it did not make. */
function temporaryLinks(policy: string): string[] {
  return inside(policy, (name) => name.startsWith('.current-c-')).filter((path) =>
    fs.lstatSync(path).isSymbolicLink(),
  );
}

/**
 * A tree is placed before the generation that it was made for. Of a generation above every one that is there, none
 * has ever named it, so nobody can be reading it.
 */
function unusedTrees(host: Host): string[] {
  const newest = newestGeneration(host);
  if (newest === undefined) return [];
  return listTrees(host.paths)
    .map(({ path }) => path)
    .filter((path) => (parseTreeName(basename(path))?.generation ?? 0) > newest);
}

/** @returns undefined when a file that says it is damaged: then nothing is known to be unused */
function newestGeneration(host: Host): number | undefined {
  try {
    const journal = readJournal(host.paths);
    const active = activeGenerationNumber(host.paths) ?? 0;
    return Math.max(0, active, journal?.from ?? 0, journal?.to ?? 0, ...listGenerations(host.paths));
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error }, 'trees without a generation are kept');
    return undefined;
  }
}

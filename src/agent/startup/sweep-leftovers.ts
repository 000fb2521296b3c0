// Removes at each start the leftovers of a crash that the journal does not record: staging areas, temporary files, trees
// without a generation, and retained releases with an interrupted replacement. A leftover that cannot be removed is
// logged and stays: it must not prevent the start, and later cycles use other names.
import * as fs from 'node:fs';
import { basename, join } from 'node:path';
import { isWritError } from '../../core/errors.js';
import { isTemporaryName } from '../../platform/disk/durable-fs.js';
import { listEntries } from '../../platform/read-file.js';
import { activeGenerationNumber, listGenerations, listTrees } from '../generations/generations.js';
import { recoverReplacedReleases } from '../generations/release-records.js';
import { sweepPartials } from '../partials/partials.js';
import type { Host } from '../state/host.js';
import { readJournal } from '../state/journal.js';
import { parseTreeName } from '../state/paths.js';

/**
 * Removes leftovers, and puts back a retained release after an interrupted replacement. Runs before any release record is
 * read. The caller holds the lock of the state directory.
 */
export function sweepLeftovers(host: Host): void {
  const { paths, durable } = host;
  const each = (paths: readonly string[], sweep: (path: string) => void): void => {
    for (const path of paths) tolerateDiskError(host, path, () => sweep(path));
  };
  // First, because staging may contain the only older copy of a release that has to be put back.
  tolerateDiskError(host, paths.archives, () => recoverReplacedReleases(paths, durable));
  each(pathsIn(paths.staging), (path) => durable.removeTree('recover.sweep-staging', path));
  sweepPartials(host);
  each(listTemporaryLinks(paths.policy), (path) => durable.removeFile('recover.sweep-link', path));
  for (const directory of [paths.state, paths.trust, join(paths.trust, 'roots'), paths.run]) {
    const left = pathsIn(directory, isTemporaryName);
    each(left, (path) => durable.removeFile('recover.sweep-file', path));
  }
  each(listUnusedTrees(host), (path) => durable.removeTree('recover.sweep-tree', path));
}

/** Logs a WritError, as one of the disk, and continues. Any other error is thrown. */
function tolerateDiskError(host: Host, path: string, act: () => void): void {
  try {
    act();
  } catch (error) {
    if (!isWritError(error)) throw error;
    host.log.warn({ err: error, path }, 'a leftover of an earlier run could not be removed');
  }
}

function pathsIn(directory: string, isLeft: (name: string) => boolean = () => true): string[] {
  return listEntries(directory)
    .map(({ name }) => name)
    .filter(isLeft)
    .map((name) => join(directory, name));
}

/** Temporary links of any cycle in the directory of `current`. Other files stay, because Writ did not create them. */
function listTemporaryLinks(policy: string): string[] {
  return pathsIn(policy, (name) => name.startsWith('.current-c-')).filter((path) =>
    fs.lstatSync(path).isSymbolicLink(),
  );
}

/**
 * Trees of a generation above each existing one. A tree is placed before its generation, so no generation has ever named
 * such a tree, and no worker can be reading it.
 */
function listUnusedTrees(host: Host): string[] {
  const newest = readNewestGeneration(host);
  if (newest === undefined) return [];
  return listTrees(host.paths)
    .map(({ path }) => path)
    .filter((path) => (parseTreeName(basename(path))?.generation ?? 0) > newest);
}

/** @returns undefined when the journal or the link is damaged, because any tree may be in use then */
function readNewestGeneration(host: Host): number | undefined {
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

// The traces that generations leave: links, trees, the journal, the history, the public status. Read when the ledger,
// which knows better, is gone. Never writes.
import { basename } from 'node:path';
import { orUndefined } from '../../core/errors.js';
import { activeGenerationNumber, listGenerations, listTrees } from '../generations/generations.js';
import { walkTree } from '../generations/walk-tree.js';
import { readHistory } from '../job/history.js';
import { readStatusFile } from '../report/status-file.js';
import { readJournal } from '../state/journal.js';
import { type HostPaths, parseTreeName } from '../state/paths.js';

/** @returns the greatest generation number that anything on this host speaks of; 0 when nothing does */
export function greatestGeneration(paths: HostPaths): number {
  const numbers = [
    ...listGenerations(paths),
    ...treeNumbers(paths),
    ...linkNumbers(paths),
    ...historyNumbers(paths),
    ...statusNumbers(paths),
  ];
  return numbers.filter(isGeneration).reduce((most, one) => Math.max(most, one), 0);
}

/** A line that somebody spoilt must not take away the numbers that are left. */
const greatestUsed = 1e15;

function isGeneration(value: number | undefined): value is number {
  return Number.isSafeInteger(value) && Number(value) > 0 && Number(value) < greatestUsed;
}

type Found = (number | undefined)[];

function treeNumbers(paths: HostPaths): Found {
  return listTrees(paths).map(({ path }) => parseTreeName(basename(path))?.generation);
}

function linkNumbers(paths: HostPaths): Found {
  const journal = orUndefined(() => readJournal(paths));
  return [orUndefined(() => activeGenerationNumber(paths)), journal?.from, journal?.to];
}

function historyNumbers(paths: HostPaths): Found {
  return readHistory(paths, { limit: Number.MAX_SAFE_INTEGER }).flatMap(({ result }) => {
    const workers = Array.isArray(result.workers) ? result.workers : [];
    return [result.generation, result.fromGeneration, ...workers.map((one) => one.generation)];
  });
}

function statusNumbers(paths: HostPaths): Found {
  const status = readStatusFile(paths);
  return [status?.generation, ...(status?.workers ?? []).flatMap((one) => [one.wanted, one.confirmed])];
}

/** @returns the latest modification time of any file of any tree, in whole seconds; 0 without one */
export async function latestMtimeSeconds(paths: HostPaths): Promise<number> {
  let latest = 0n;
  for (const tree of listTrees(paths)) {
    for await (const { stats } of walkTree(tree.path)) {
      const seconds = stats.mtimeMs / 1000n;
      if (stats.isFile() && seconds > latest) latest = seconds;
    }
  }
  return Number(latest);
}

// Gives the trees that become active again a new modification time: BIND, NSD, CoreDNS and nginx skip files that
// are not newer than what they loaded. Changes times only, and never those of a tree that is in use.
import { join } from 'node:path';
import type { Host } from '../state/host.js';
import { type Generation, readGeneration, reserveMtime } from './generations.js';
import { canBeSigned, walkTree } from './walk-tree.js';

/**
 * Takes the next time out of the ledger and sets it, before the swap, on the files of the generation that is to
 * come back, those of trees that `inUse` contains too left out.
 * @throws WritError STATE_DAMAGED; DISK_* for a file that cannot be touched
 */
export async function touchTrees(
  host: Host,
  options: { readonly comingBack: number; readonly inUse: number | undefined },
): Promise<void> {
  const { comingBack, inUse } = options;
  const kept = inUse === undefined ? [] : treesOf(readGeneration(host.paths, inUse));
  const trees = treesOf(readGeneration(host.paths, comingBack)).filter((path) => !kept.includes(path));
  if (trees.length === 0) return;
  const mtimeSeconds = reserveMtime(host);
  for (const tree of trees) {
    for await (const { path, stats } of walkTree(tree)) {
      if (stats.isFile() && canBeSigned(path))
        host.durable.touch('touch.file', join(tree, path), mtimeSeconds);
    }
  }
}

/**
 * As touchTrees before a policy comes back: without a newer time a worker as BIND would keep what was just refused. Best
 * effort: an old policy with an old time is better than the new one.
 */
export async function touchIfPossible(host: Host, options: Parameters<typeof touchTrees>[1]): Promise<void> {
  try {
    await touchTrees(host, options);
  } catch (error) {
    host.log.warn({ err: error }, 'the files of the restored generation keep their times');
  }
}

function treesOf(generation: Generation): string[] {
  return generation.entries.map((entry) => entry.treePath);
}

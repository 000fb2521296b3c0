// Sets a new modification time on trees that become active again, because BIND, NSD, CoreDNS and nginx skip files that are
// not newer than those that they loaded. Changes times only, and never those of a tree in the active generation.
import { join } from 'node:path';
import type { Host } from '../state/host.js';
import { type Generation, readGeneration, reserveMtime } from './generations.js';
import { isSignablePath, walkTree } from './walk-tree.js';

/**
 * Reserves the next modification time in the ledger and sets it, before the swap, on the files of a generation. Trees that
 * the generation `inUse` contains too are left unchanged.
 * @throws WritError STATE_DAMAGED; DISK_* if the time of a file cannot be set
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
      if (stats.isFile() && isSignablePath(path))
        host.durable.touch('touch.file', join(tree, path), mtimeSeconds);
    }
  }
}

/**
 * Does touchTrees before a restore: without a newer time a worker such as BIND would keep the refused policy. An error is
 * only logged, because the old policy with an old time is better than the refused one.
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

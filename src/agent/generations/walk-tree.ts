// Lists all entries below a directory, including names that are not UTF-8, and follows no link. Bounds the depth and pauses
// for the event loop.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { defaultArchiveLimits } from '../../core/limits.js';
import { yieldToEventLoop } from '../../platform/time/clock.js';

export interface TreeNode {
  /** Relative to the root, with `/`. A path with U+FFFD, which no signed path has, may not be the name on disk. */
  readonly path: string;
  readonly stats: fs.BigIntStats;
}

/** Number of nodes between two pauses: about 5 ms of system calls. */
const nodesPerPause = 512;

/**
 * Yields every node below `root`, without the root and without nodes that are removed meanwhile. A directory that no
 * release can contain is listed, but not its contents: an attacker with write access could bury the rest of the walk in it.
 * Pauses for the event loop.
 * @throws errors of the system (ENOENT if the root does not exist)
 */
export async function* walkTree(root: string): AsyncGenerator<TreeNode> {
  const pending = [''];
  let count = 0;
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const name of fs.readdirSync(join(root, folder), { encoding: 'buffer' })) {
      // Use the bytes of the name: a name that is not UTF-8 would not be found by its text, and the walk would skip it.
      const bytes = Buffer.concat([Buffer.from(`${root}/${folder}`), name]);
      const stats = fs.lstatSync(bytes, { bigint: true, throwIfNoEntry: false });
      if (stats === undefined) continue;
      const path = `${folder}${name.toString()}`;
      if (stats.isDirectory() && isSignablePath(path)) pending.push(`${path}/`);
      yield { path, stats };
      count += 1;
      if (count % nodesPerPause === 0) await yieldToEventLoop();
    }
  }
}

/**
 * @returns true if a manifest may contain the path. The system rejects longer paths (ENAMETOOLONG), which would end the
 *   scan of the whole tree.
 */
export function isSignablePath(path: string): boolean {
  return !path.includes('\ufffd') && Buffer.byteLength(path) <= defaultArchiveLimits.maxPathBytes;
}

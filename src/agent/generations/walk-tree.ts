// Lists what really is below a directory, following no link, whatever its names are. Owns the walk, its depth and the
// pauses in it; judges nothing.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { defaultArchiveLimits } from '../../core/limits.js';
import { letOthersRun } from '../../platform/time/clock.js';

export interface TreeNode {
  /** Relative to the root of the walk, with `/`. With a U+FFFD, which no signed path has, it may lead to nobody. */
  readonly path: string;
  readonly stats: fs.BigIntStats;
}

/** Nodes between two pauses: about 5 ms of system calls. */
const nodesPerPause = 512;

/**
 * Yields every node below `root`, the root itself left out; a node that vanishes meanwhile is left out too. What is in
 * a directory that no release can have is not listed: who may write here could hide or bury the rest behind it.
 * Lets the event loop run in between. Errors are those of the system (ENOENT for a root that is not there).
 */
export async function* walkTree(root: string): AsyncGenerator<TreeNode> {
  const pending = [''];
  let count = 0;
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const name of fs.readdirSync(join(root, folder), { encoding: 'buffer' })) {
      // By its bytes: a name that is not UTF-8 read as text is the name of nobody, and would be passed over.
      const bytes = Buffer.concat([Buffer.from(`${root}/${folder}`), name]);
      const stats = fs.lstatSync(bytes, { bigint: true, throwIfNoEntry: false });
      if (stats === undefined) continue;
      const path = `${folder}${name.toString()}`;
      if (stats.isDirectory() && canBeSigned(path)) pending.push(`${path}/`);
      yield { path, stats };
      count += 1;
      if (count % nodesPerPause === 0) await letOthersRun();
    }
  }
}

/** Behind a longer path the system itself gives up (ENAMETOOLONG), and with it would whoever looks over the tree. */
export function canBeSigned(path: string): boolean {
  return !path.includes('\ufffd') && Buffer.byteLength(path) <= defaultArchiveLimits.maxPathBytes;
}

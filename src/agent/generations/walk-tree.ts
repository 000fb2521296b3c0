// Lists what really lies below a directory, following no link. Owns the walk and the pauses in it; judges nothing.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { letOthersRun } from '../../platform/time/clock.js';

export interface TreeNode {
  /** Relative to the root of the walk, with `/`. */
  readonly path: string;
  readonly stats: fs.BigIntStats;
}

/** Nodes between two pauses: about 5 ms of system calls. */
const nodesPerPause = 512;

/**
 * Yields every node below `root`, the root itself left out; a node that vanishes meanwhile is left out too.
 * Lets the event loop run in between. Errors are those of the system (ENOENT for a root that is not there).
 */
export async function* walkTree(root: string): AsyncGenerator<TreeNode> {
  const pending = [''];
  let count = 0;
  for (let folder = pending.pop(); folder !== undefined; folder = pending.pop()) {
    for (const name of fs.readdirSync(join(root, folder))) {
      const path = folder === '' ? name : `${folder}/${name}`;
      const stats = fs.lstatSync(join(root, path), { bigint: true, throwIfNoEntry: false });
      if (stats === undefined) continue;
      if (stats.isDirectory()) pending.push(path);
      yield { path, stats };
      count += 1;
      if (count % nodesPerPause === 0) await letOthersRun();
    }
  }
}

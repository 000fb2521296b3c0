// Reads the policy behind `current` as a worker does: the tree of each bundle, file by file, and the serial of its release.
// Reads regular files only, so that no read can hang.
import * as fs from 'node:fs';
import { join } from 'node:path';
import type { HostPaths } from '../../../src/agent/state/paths.js';
import { digestOf } from './simulated-publisher.js';

export interface FoundTree {
  readonly bundle: string;
  readonly serial: number;
  /** Digest of the files, as `digestOf` computes it for the published release. */
  readonly digest: string;
}

/** @returns undefined when `current` does not exist. @throws Error when a file cannot be read */
export function readActivePolicy({ current }: Pick<HostPaths, 'current'>): FoundTree[] | undefined {
  if (fs.lstatSync(current, { throwIfNoEntry: false }) === undefined) return undefined;
  const active = fs.realpathSync(current);
  return fs.readdirSync(active).map((bundle) => {
    const tree = fs.realpathSync(join(active, bundle));
    const files = filesBelow(tree);
    const serial = Number(/^\w[\w-]* (\d+) /.exec(files[0]?.content ?? '')?.[1] ?? -1);
    return { bundle, serial, digest: digestOf(files) };
  });
}

function filesBelow(tree: string): { readonly path: string; readonly content: string }[] {
  return fs
    .readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter((one) => !one.isDirectory())
    .map((one) => {
      const path = join(one.parentPath, one.name);
      const stat = fs.lstatSync(path);
      const isPlain = stat.isFile() && stat.size < 100_000;
      return {
        path: path.slice(tree.length + 1),
        content: isPlain ? fs.readFileSync(path, 'utf8') : 'no plain file',
      };
    })
    .sort((one, other) => (one.path < other.path ? -1 : 1));
}

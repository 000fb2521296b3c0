// Which manifests this process has held to their signed digests, and that they are the same files since: a poll with nothing
// to do reads none of them again. Vouches for no bytes: rows that somebody asks for are read and proven in that moment.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';
import type { HostPaths } from '../state/paths.js';
import { type KeptManifest, manifestFile, openManifest, releasePath } from './release-records.js';

/** By bundle, of which one release is active: the file that was proven, and what it was proven against. */
const provenOf = new WeakMap<HostPaths, Map<string, string>>();

/**
 * As openManifest, except for a file that was proven before and has not been changed, moved or replaced since. A disk that
 * turns bits by itself leaves no such trace: that is the scrub's to find, as in every other file.
 * @throws WritError STATE_DAMAGED
 */
export function openProvenManifest(
  paths: HostPaths,
  bundle: string,
  name: string,
  signed: Digest,
): KeptManifest {
  const proven = provenOf.get(paths) ?? new Map<string, string>();
  provenOf.set(paths, proven);
  // Before it is read: a file that takes its place meanwhile is another one the next time.
  const identity = identityOf(join(releasePath(paths, bundle, name), manifestFile));
  const proof = identity && `${identity} ${signed}`;
  if (proof === undefined || proven.get(bundle) !== proof) {
    proven.delete(bundle);
    const open = openManifest(paths, bundle, name, signed);
    if (proof !== undefined) proven.set(bundle, proof);
    return open;
  }
  let kept: KeptManifest | undefined;
  const read = (): KeptManifest => {
    // The next cycle is to see for itself what this one finds damaged.
    proven.delete(bundle);
    kept ??= openManifest(paths, bundle, name, signed);
    proven.set(bundle, proof);
    return kept;
  };
  return {
    get bytes() {
      return read().bytes;
    },
    parsed: () => read().parsed(),
  };
}

/** @returns what no write, rename or replacement leaves as it was, the time of the last change by the kernel's clock among it */
function identityOf(path: string): string | undefined {
  try {
    const stats = fs.lstatSync(path, { bigint: true });
    if (!stats.isFile()) return undefined;
    return [path, stats.dev, stats.ino, stats.size, stats.mode, stats.ctimeNs].join(' ');
  } catch (error) {
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

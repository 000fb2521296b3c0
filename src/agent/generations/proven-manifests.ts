// Remembers which manifest files this process has verified, so that a poll without a change reads none of them again. Only
// the identity of a file is cached, never its bytes: an access to its rows reads and verifies the file again.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import type { Digest } from '../../core/names.js';
import type { HostPaths } from '../state/paths.js';
import { type KeptManifest, manifestFile, openManifest, releasePath } from './release-records.js';

/** Identity of the verified file and its signed digest, by bundle: a bundle has one active release. */
const provenOf = new WeakMap<HostPaths, Map<string, string>>();

/**
 * Opens a manifest as openManifest does, but does not read a file again that was verified before and has not been changed,
 * moved or replaced since. Bit rot leaves no such trace; the scrub finds it.
 * @param name directory name of the release
 * @param signed digest of the manifest, as it was signed
 * @throws WritError STATE_DAMAGED if the file is unreadable or does not match; also at a later access to its contents
 */
export function openProvenManifest(
  paths: HostPaths,
  bundle: string,
  name: string,
  signed: Digest,
): KeptManifest {
  const proven = provenOf.get(paths) ?? new Map<string, string>();
  provenOf.set(paths, proven);
  // Read the identity before the bytes, so that a file that replaces it meanwhile differs at the next call.
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
    // If the file is damaged now, the next cycle must verify it again.
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

/**
 * @returns path, inode, size, mode and ctime of a file, of which every write, rename or replacement changes one; undefined
 *   if it is no plain file
 */
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

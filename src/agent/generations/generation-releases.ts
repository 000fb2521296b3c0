// Which releases a generation names, as far as its links and their records can be read: enough to know a candidate
// again, whatever has become of its trees. Reads only; what is whole is whole-generations' to say.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError, orUndefined } from '../../core/errors.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import { type HostPaths, parseBundleLink } from '../state/paths.js';
import { readRecord } from './release-records.js';

/** @returns the releases whose link and record can be read, sorted by bundle */
export function releasesNamedBy(paths: HostPaths, generation: number): ReleaseInfo[] {
  const path = join(paths.generations, String(generation));
  return namesIn(path).flatMap((bundle) => {
    const tree = parseBundleLink(bundle, linkText(join(path, bundle)));
    if (tree === undefined) return [];
    return orUndefined(() => readRecord(paths, bundle, tree.release))?.release ?? [];
  });
}

/** @returns the names in the directory of a generation, sorted; none where it cannot be read */
export function namesIn(path: string): string[] {
  try {
    return fs.readdirSync(path).sort();
  } catch (error) {
    if (isSystemError(error)) return [];
    throw error;
  }
}

function linkText(path: string): string {
  try {
    return fs.readlinkSync(path);
  } catch (error) {
    if (isSystemError(error)) return '';
    throw error;
  }
}

/**
 * What a move brings: the releases that its generation has and the one before has not.
 * @param from absent at a first activation
 */
export function releasesBrought(paths: HostPaths, move: { from?: number; to: number }): ReleaseInfo[] {
  const before = move.from === undefined ? [] : releasesNamedBy(paths, move.from);
  return releasesNamedBy(paths, move.to).filter(
    ({ bundle, manifest }) =>
      !before.some((one) => one.bundle === bundle && one.manifest.digest === manifest.digest),
  );
}

/** @returns which release of each bundle a generation names, by its links alone: no record is read */
export function releaseNamesIn(paths: HostPaths, generation: number): Map<string, string> {
  const path = join(paths.generations, String(generation));
  const names = namesIn(path).map((bundle): [string, string] => {
    const tree = parseBundleLink(bundle, linkText(join(path, bundle)));
    return [bundle, tree?.release ?? ''];
  });
  return new Map(names);
}

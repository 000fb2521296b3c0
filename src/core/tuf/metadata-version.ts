// The version of a metadata file: which numbers hosts, file names and signatures have, and how far a version may be above
// the published one. Pure.

/** The highest version: the parser of metadata refuses each number that is not a safe integer. */
export const maxVersion: number = Number.MAX_SAFE_INTEGER;

export function isVersion(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/** @returns the version that the name of a file has; undefined for a number above maxVersion */
export function parseVersion(digits: string | undefined): number | undefined {
  const version = Number(digits);
  return isVersion(version) ? version : undefined;
}

/**
 * Fast-forward attack: a thief signs the highest version, so that no version of a new key can follow. A publisher and a server
 * therefore publish no file that is further above the published version than this.
 */
export const maxVersionStep = 1_000_000;

/**
 * A thief signs the last version within the step. The next version is then one more, and it must be readable: so an unbroken
 * row of versions above the step counts too. Such a row ends far below the highest version, because files take space.
 * @param versions of one role on disk, ascending
 * @param published the version that hosts see; 0 before they see any
 * @returns the versions that may be read, published or followed by the next version
 */
export function reachableVersions(versions: readonly number[], published: number): number[] {
  let highest = published + maxVersionStep;
  return versions.filter((version) => {
    if (version === highest + 1) highest = version;
    return version <= highest;
  });
}

/** A repository reaches this version by an attack only: at one signature a second, after 30,000 years. */
const maxHonestVersion = 1e12;

/** @returns whether versions begin again, once hosts delete the snapshot and the timestamp with the published versions */
export function beginsAgain(version: number): boolean {
  return version > maxHonestVersion;
}

// The version of a metadata file: which numbers hosts, file names and signatures have, and how far a version may be above
// the published one. Pure.

/** The highest version: the parser of metadata refuses each number that is not a safe integer. */
export const maxVersion: number = Number.MAX_SAFE_INTEGER;

/** @returns the version that the name of a file has; undefined for a number above maxVersion */
export function parseVersion(digits: string | undefined): number | undefined {
  const version = Number(digits);
  return Number.isSafeInteger(version) && version >= 1 ? version : undefined;
}

/**
 * Fast-forward attack: a thief signs the highest version, so that no version of a new key can follow. A publisher and a server
 * therefore publish no file that is further above the published version than this.
 */
export const maxVersionStep = 1_000_000;

/** @returns whether a file with this version may be read, published or followed by the next version */
export function isReachableVersion(version: number, published: number): boolean {
  return version <= published + maxVersionStep;
}

/** A repository reaches this version by an attack only: at one signature a second, after 30,000 years. */
const maxHonestVersion = 1e12;

/** @returns whether versions begin again, once hosts delete the snapshot and the timestamp with the published versions */
export function beginsAgain(version: number): boolean {
  return version > maxHonestVersion;
}

// Versions of metadata files: the range of valid numbers, and how far a version may be above the published one. Pure.

/** The highest version: the parser of metadata rejects each number that is not a safe integer. */
export const maxVersion: number = Number.MAX_SAFE_INTEGER;

/** @returns whether the value is a valid version: a whole number from 1 to `maxVersion` */
export function isVersion(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 1;
}

/** @returns the version in the name of a file; undefined for a number above maxVersion */
export function parseVersion(digits: string | undefined): number | undefined {
  const version = Number(digits);
  return isVersion(version) ? version : undefined;
}

/**
 * Fast-forward attack: with a stolen key the attacker signs the highest version, so that no version of a new key can follow. A gap
 * before a version is accepted only up to this number, which a repository reaches only by an attack: at one signature a second,
 * after 30,000 years.
 */
export const maxVersionAfterGap = 1e12;

/**
 * The set does not grow while the publisher continues: an attacker's file outside of it must not take the place of a later release.
 * @param versions of one role on disk, ascending
 * @param published the version that hosts see; 0 before the first
 * @returns the versions that may be read, published or followed by the next version
 */
export function reachableVersions(versions: readonly number[], published: number): number[] {
  let highest = published;
  return versions.filter((version) => {
    if (version > maxVersionAfterGap && version > highest + 1) return false;
    highest = Math.max(highest, version);
    return true;
  });
}

/**
 * A repository continues above the last version after a gap if an attacker with a stolen key signed that version. A version above
 * this constant is published with stolen online keys only. Versions then restart, and the snapshot omits a team until it signs
 * again.
 */
const maxContinuedVersion = 2 * maxVersionAfterGap;

/** @returns whether versions restart as soon as hosts have deleted the snapshot and the timestamp with the published versions */
export function beginsAgain(version: number): boolean {
  return version > maxContinuedVersion;
}

/**
 * Fast-forward attack: with a stolen key the attacker signed a version so high that no version can follow. When a root removes the
 * key of the snapshot or timestamp, hosts delete both files (specification 5.3.11), so that versions may restart.
 * @param outdated roles with keys that the root no longer lists
 */
export function forgetsVersions(outdated: readonly string[]): boolean {
  return outdated.includes('timestamp') || outdated.includes('snapshot');
}

/** @returns whether the versions of the targets restart: hosts accept this only if the root replaces their key too */
export function restartsTargets(outdated: readonly string[], version: number): boolean {
  return forgetsVersions(outdated) && outdated.includes('targets') && beginsAgain(version);
}

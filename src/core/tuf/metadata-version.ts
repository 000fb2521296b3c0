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
 * Fast-forward attack: a thief signs the highest version, so that no version of a new key can follow. Only versions up to this
 * one may have a gap before them. A repository reaches it by an attack only: at one signature a second, after 30,000 years.
 */
export const maxVersionAfterGap = 1e12;

/**
 * The set does not grow while a publisher goes on: a thief's file outside of it must not take the place of a later release.
 * @param versions of one role on disk, ascending
 * @param published the version that hosts see; 0 before they see any
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
 * A repository that a stolen key took to the last version after a gap continues above it. Only stolen online keys publish a
 * version above this one, and a restart of versions takes a team out of the snapshot until it signs.
 */
const maxContinuedVersion = 2 * maxVersionAfterGap;

/** @returns whether versions begin again, once hosts delete the snapshot and the timestamp with the published versions */
export function beginsAgain(version: number): boolean {
  return version > maxContinuedVersion;
}

/**
 * Fast-forward attack: a stolen key signed a version so high that no version can follow. A root that removes the key of the
 * snapshot or timestamp makes hosts delete both files (specification 5.3.11), so that versions may begin again.
 * @param outdated the roles with keys that the root no longer lists
 */
export function forgetsVersions(outdated: readonly string[]): boolean {
  return outdated.includes('timestamp') || outdated.includes('snapshot');
}

/** @returns whether the versions of the targets begin again: only a root that replaces their key too makes hosts accept it */
export function restartsTargets(outdated: readonly string[], version: number): boolean {
  return forgetsVersions(outdated) && outdated.includes('targets') && beginsAgain(version);
}

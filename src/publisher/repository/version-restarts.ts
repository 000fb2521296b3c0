// Roles with versions that restarted after an attack (adr/0073). The first snapshot after the restart records the last
// published file of each such role, because hosts have its releases and its serials are used.
import { beginsAgain, isVersion } from '../../core/tuf/metadata-version.js';
import type { MetaFile, SnapshotSigned } from '../../core/tuf/tuf-metadata.js';

/** The last published file of a role before its versions restarted; without digests where it did not verify then. */
export interface VersionRestart extends MetaFile {
  /** The highest version on disk below the new versions: files up to this one were signed before the restart. */
  readonly after: number;
}

/** By role: `snapshot`, `targets` or a delegated one. */
export type VersionRestarts = ReadonlyMap<string, VersionRestart>;

/** @returns `writ.restarts` of a snapshot; entries of another form are left out, because a stolen key may have signed them */
export function readVersionRestarts(signed: object): VersionRestarts {
  const { writ } = signed as { readonly writ?: { readonly restarts?: unknown } };
  const entries = Object.entries(isObject(writ?.restarts) ? writ.restarts : {});
  return new Map(entries.filter((entry): entry is [string, VersionRestart] => isRestart(entry[1])));
}

function isRestart(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { version, after, length, hashes } = value;
  const hasDigests = isObject(hashes) && Object.values(hashes).every((digest) => typeof digest === 'string');
  return (
    isVersion(version) &&
    (after === 0 || isVersion(after)) &&
    (length === undefined || Number.isSafeInteger(length)) &&
    (hashes === undefined || hasDigests)
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @returns the file of a role that a snapshot lists */
export function listedFile(meta: Readonly<Record<string, MetaFile>>, role: string): MetaFile | undefined {
  return Object.hasOwn(meta, `${role}.json`) ? meta[`${role}.json`] : undefined;
}

/** @returns the version that the next version of a role follows; 0 before its first */
export function publishedVersion(
  { meta, restarts }: { readonly meta: SnapshotSigned['meta']; readonly restarts: VersionRestarts },
  role: string,
): number {
  return listedFile(meta, role)?.version ?? restarts.get(role)?.after ?? 0;
}

/** @returns the version of the last file of a role that hosts saw, also where its versions restart; 0 for none */
export function lastSeenVersion(
  { meta, restarts }: { readonly meta: SnapshotSigned['meta']; readonly restarts: VersionRestarts },
  role: string,
): number {
  return (listedFile(meta, role) ?? restarts.get(role))?.version ?? 0;
}

/**
 * Versions in the order in which they were signed: those before the attack, those of the attack, those after the restart.
 * @returns less than 0 where the first version was signed before the other one
 */
export function compareSigning(restart: VersionRestart | undefined, one: number, other: number): number {
  const isLater = (version: number): boolean =>
    restart !== undefined && version > restart.after && !beginsAgain(version);
  return Number(isLater(one)) - Number(isLater(other)) || one - other;
}

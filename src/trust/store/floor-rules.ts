// The versions below which metadata is a rollback, as this boot has accepted them: a second memory beside the trust store, which a
// restored backup makes older (adr/0067). Pure: trust-floors.ts reads and writes.
import type { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { findOlderInSnapshot, rollback } from '../../core/tuf/metadata-checks.js';
import type { TrustedSet } from '../../core/tuf/trusted-set.js';
import { type TopLevelRole, topLevelRoles } from '../../core/tuf/tuf-metadata.js';

export interface TrustFloors extends Readonly<Record<TopLevelRole, number>> {
  /** The versions of the delegated roles that the snapshot lists, by file name as `team.json`. Left out where it lists none. */
  readonly delegated?: Readonly<Record<string, number>>;
}

/** What floors belong to; those of anything else do not count. */
export interface FloorOwner {
  readonly boot: string;
  /** SHA-256 of the bootstrap root, in hexadecimal digits. */
  readonly bootstrap: string;
}

export interface KnownFloors {
  /** Of the state directory that they were accepted in. */
  readonly mark: string;
  readonly floors: TrustFloors;
}

/** @returns what the text says; `foreign` for another boot or another bootstrap root, `damaged` for any other content */
export function parseFloors(text: string, owner: FloorOwner): KnownFloors | 'foreign' | 'damaged' {
  const { writ, boot, bootstrap, mark, delegated, ...rest } = objectIn(text);
  if (writ !== 1 || typeof mark !== 'string') return 'damaged';
  const names = Object.keys(rest).sort();
  if (names.join() !== [...topLevelRoles].sort().join()) return 'damaged';
  if (!areVersions(rest) || !(delegated === undefined || areVersions(delegated))) return 'damaged';
  if (boot !== owner.boot || bootstrap !== owner.bootstrap) return 'foreign';
  return { mark, floors: { ...rest, ...given({ delegated }) } as TrustFloors };
}

function areVersions(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every((version) => Number.isSafeInteger(version) && version > 0);
}

export function floorsText({ mark, floors }: KnownFloors, { boot, bootstrap }: FloorOwner): string {
  return `${JSON.stringify({ writ: 1, boot, bootstrap, mark, ...floors })}\n`;
}

/** @returns the versions of a set; undefined for one without all roles */
export function floorsOf(set: TrustedSet): TrustFloors | undefined {
  const { root, timestamp, snapshot, targets } = set;
  if (timestamp === undefined || snapshot === undefined || targets === undefined) return undefined;
  const versions = { root, timestamp, snapshot, targets };
  const entries = Object.entries(versions).map(([role, file]) => [role, file.signed.version]);
  const delegated = Object.entries(snapshot.signed.meta)
    .filter(([name]) => name !== 'targets.json')
    .map(([name, { version }]) => [name, version] as const);
  const floors = Object.fromEntries(entries) as TrustFloors;
  return delegated.length === 0 ? floors : { ...floors, delegated: Object.fromEntries(delegated) };
}

/**
 * A newer root may replace the keys of a role, whose versions then begin again (5.3.11): floors of the other roles apply under the
 * root that they were accepted under.
 * Those of delegated roles are compared with what the snapshot lists, as the stored snapshot is (5.5.5): a thief of the online keys
 * cannot offer an older release of a team to a host without its state.
 * @returns METADATA_ROLLBACK where the file of the role, or of a delegated role, is older than this boot has accepted
 */
export function findBelowFloor(
  set: TrustedSet,
  role: TopLevelRole,
  floors: TrustFloors | undefined,
): WritError | undefined {
  const version = set[role]?.signed.version;
  if (floors === undefined || version === undefined) return undefined;
  if (role !== 'root' && set.root.signed.version > floors.root) return undefined;
  if (version < floors[role]) return rollback(role, floors[role], version);
  const { snapshot } = set;
  if (role !== 'snapshot' || snapshot === undefined) return undefined;
  return Object.entries(floors.delegated ?? {})
    .map(([name, least]) => findOlderInSnapshot(name, least, snapshot.signed.meta))
    .find((error) => error !== undefined);
}

function objectIn(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

// The versions below which metadata is a rollback, as this boot has accepted them: a second memory beside the trust store, which a
// restored backup makes older (adr/0067). Pure: trust-floors.ts reads and writes.
import type { WritError } from '../../core/errors.js';
import { rollback } from '../../core/tuf/metadata-checks.js';
import type { TrustedSet } from '../../core/tuf/trusted-set.js';
import { type TopLevelRole, topLevelRoles } from '../../core/tuf/tuf-metadata.js';

export type TrustFloors = Readonly<Record<TopLevelRole, number>>;

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
  const { writ, boot, bootstrap, mark, ...rest } = objectIn(text);
  if (writ !== 1 || typeof mark !== 'string') return 'damaged';
  const names = Object.keys(rest).sort();
  if (names.join() !== [...topLevelRoles].sort().join()) return 'damaged';
  const isVersion = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) > 0;
  if (!Object.values(rest).every(isVersion)) return 'damaged';
  if (boot !== owner.boot || bootstrap !== owner.bootstrap) return 'foreign';
  return { mark, floors: rest as TrustFloors };
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
  return Object.fromEntries(entries) as TrustFloors;
}

/**
 * A newer root may replace the keys of a role, whose versions then begin again (5.3.11): floors of the other roles apply under the
 * root that they were accepted under.
 * @returns METADATA_ROLLBACK where the file of the role is older than this boot has accepted
 */
export function findBelowFloor(
  set: TrustedSet,
  role: TopLevelRole,
  floors: TrustFloors | undefined,
): WritError | undefined {
  const version = set[role]?.signed.version;
  if (floors === undefined || version === undefined || version >= floors[role]) return undefined;
  if (role !== 'root' && set.root.signed.version > floors.root) return undefined;
  return rollback(role, floors[role], version);
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

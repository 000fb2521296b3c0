// The trust floors: the versions that this boot has accepted, below which metadata is a rollback. They protect a host on which an
// older backup replaced the trust store (adr/0067). Pure; trust-floors.ts reads and writes the file.
import type { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { findOlderInSnapshot, rollback } from '../../core/tuf/metadata-checks.js';
import type { TrustedSet } from '../../core/tuf/trusted-set.js';
import { type TopLevelRole, topLevelRoles } from '../../core/tuf/tuf-metadata.js';

export interface TrustFloors extends Readonly<Record<TopLevelRole, number>> {
  /** Versions of the delegated roles that the snapshot lists, by file name, as `team.json`. Undefined if it lists none. */
  readonly delegated?: Readonly<Record<string, number>>;
}

/** The boot and the bootstrap root that the floors belong to; floors of others are ignored. */
export interface FloorOwner {
  readonly boot: string;
  /** SHA-256 of the bootstrap root, hex. */
  readonly bootstrap: string;
}

export interface KnownFloors {
  /** State mark of the state directory in which the versions were accepted. */
  readonly mark: string;
  readonly floors: TrustFloors;
}

/** @returns the floors in the text; `foreign` for another boot or bootstrap root, `damaged` for any other content */
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

/**
 * @returns the content of the file with the trust floors, with the boot, the state mark and the root that they belong
 * to
 */
export function floorsText({ mark, floors }: KnownFloors, { boot, bootstrap }: FloorOwner): string {
  return `${JSON.stringify({ writ: 1, boot, bootstrap, mark, ...floors })}\n`;
}

/** @returns the versions of a set; undefined if a role is missing */
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
 * Compares the file of a role with its floor. A newer root may replace the keys of a role, so that its versions restart (5.3.11): the
 * floors of roles other than root apply only under the root with which they were accepted.
 * The floors of delegated roles are compared with the entries of the snapshot, as the stored snapshot is (5.5.5): with stolen online
 * keys an attacker must not offer an older release of a team to a host without its state.
 * @returns METADATA_ROLLBACK if the file of the role or of a delegated role is older than this boot has accepted
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

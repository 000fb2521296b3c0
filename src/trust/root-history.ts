// Which root a host trusts, from what lies in its store: root.json, the history, and the bootstrap root that was
// shipped with it. Owns healing of a damaged root.json and the link between bootstrap and history. Pure over
// the bytes it is given.
import { isWritError, WritError } from '../core/errors.js';
import { type TrustedSet, trustFirstRoot, trustNextRoot } from '../core/trusted-set.js';

export interface StoredRoots {
  readonly bootstrap: Uint8Array;
  /** root.json */
  readonly current: Uint8Array | undefined;
  /** Versions in roots/, ascending. */
  readonly versions: readonly number[];
  read(version: number): Uint8Array | undefined;
}

export interface StoredTrust {
  readonly set: TrustedSet;
  /** `ahead`: the bootstrap root is newer than all we know; the chain from the server has to reach it. */
  readonly link: 'linked' | 'ahead';
}

/**
 * @throws WritError ROOT_NOT_LINKED when the bootstrap root is of another repository; TRUST_STORE_DAMAGED when
 *   neither root.json nor the history can be used; what trustFirstRoot throws about the bootstrap root
 */
export function trustStoredRoot(roots: StoredRoots): StoredTrust {
  const bootstrap = trustFirstRoot(roots.bootstrap);
  // First use: the only moment at which trust comes from the configuration alone.
  if (roots.current === undefined && roots.versions.length === 0) return { set: bootstrap, link: 'linked' };
  const set = tryRoot(() => (roots.current === undefined ? undefined : trustFirstRoot(roots.current)));
  const trusted = set ?? rebuild(bootstrap, roots);
  if (isLinked(bootstrap, roots)) return { set: trusted, link: 'linked' };
  // Another repository's root must never quietly take the place of the history we have.
  if (versionOf(bootstrap) <= versionOf(trusted)) throw notLinked(bootstrap, trusted);
  return { set: trusted, link: 'ahead' };
}

/** @returns true if the bootstrap root is one of ours, or one signature away from one of ours */
export function isLinked(bootstrap: TrustedSet, roots: StoredRoots): boolean {
  const version = versionOf(bootstrap);
  const same = knownRoot(roots, version);
  if (same !== undefined) return Buffer.from(same).equals(bootstrap.root.bytes);
  const after = knownRoot(roots, version + 1);
  if (after !== undefined) return tryRoot(() => trustNextRoot(bootstrap, after)) !== undefined;
  const before = knownRoot(roots, version - 1);
  if (before === undefined) return false;
  return tryRoot(() => trustNextRoot(trustFirstRoot(before), bootstrap.root.bytes)) !== undefined;
}

export function notLinked(bootstrap: TrustedSet, trusted: TrustedSet): WritError {
  const expected = versionOf(trusted);
  const actual = versionOf(bootstrap);
  return new WritError(
    'ROOT_NOT_LINKED',
    `the configured root (version ${actual}) is not in the history that ends in version ${expected}`,
    { facts: { expected, actual } },
  );
}

/** A usable root of this version, from the history or from root.json; damaged ones count as absent. */
function knownRoot(roots: StoredRoots, version: number): Uint8Array | undefined {
  for (const bytes of [roots.read(version), roots.current]) {
    const set = tryRoot(() => (bytes === undefined ? undefined : trustFirstRoot(bytes)));
    if (set !== undefined && versionOf(set) === version) return bytes;
  }
  return undefined;
}

/** root.json is damaged: the chain is followed again, every link checked, as far as it holds. */
function rebuild(bootstrap: TrustedSet, roots: StoredRoots): TrustedSet {
  const oldest = roots.versions.find((version) => knownRoot(roots, version) !== undefined);
  const oldestBytes = oldest === undefined ? undefined : knownRoot(roots, oldest);
  let set = isLinked(bootstrap, roots)
    ? bootstrap
    : tryRoot(() => oldestBytes && trustFirstRoot(oldestBytes));
  if (set === undefined) {
    throw new WritError(
      'TRUST_STORE_DAMAGED',
      'root.json is damaged and the history of roots cannot rebuild it',
    );
  }
  for (;;) {
    const bytes = roots.read(versionOf(set) + 1);
    const from: TrustedSet = set;
    const next = tryRoot(() => bytes && trustNextRoot(from, bytes));
    if (next === undefined) return set;
    set = next;
  }
}

function versionOf(set: TrustedSet): number {
  return set.root.signed.version;
}

function tryRoot(judge: () => TrustedSet | undefined): TrustedSet | undefined {
  try {
    return judge();
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

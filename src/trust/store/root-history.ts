// Determines the root that a host trusts, from root.json, the history and the bootstrap root. Rebuilds a damaged root.json from the
// history, and checks that the bootstrap root and the history are linked. Pure; the caller reads the files.
import { createHash } from 'node:crypto';
import { isWritError, WritError } from '../../core/errors.js';
import { type TrustedSet, trustFirstRoot, trustNextRoot } from '../../core/tuf/trusted-set.js';

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
  /**
   * `open`: the bootstrap root, or a root in the history after a gap, is newer than all roots that are linked here. The chain from
   * the server must reach it.
   */
  readonly link: 'linked' | 'open';
  /** The bootstrap root, if it is linked. If its file and the next one were lost, nothing would link it any more. */
  readonly anchor?: { readonly version: number; readonly bytes: Uint8Array };
}

/**
 * @throws WritError ROOT_NOT_LINKED if the bootstrap root is of another repository; TRUST_STORE_DAMAGED if neither root.json nor the
 *   history can be used; and the errors of trustFirstRoot for the bootstrap root
 */
export function trustStoredRoot(roots: StoredRoots): StoredTrust {
  const bootstrap = trustFirstRoot(roots.bootstrap);
  // First use: the only case in which trust comes from the configuration alone.
  if (roots.current === undefined && roots.versions.length === 0) return { set: bootstrap, link: 'linked' };
  const trusted = followHistory(currentRoot(roots) ?? firstOfHistory(bootstrap, roots), roots);
  // The host never returns to a root before one that it accepted, even if the chain to that one is damaged.
  const link = versionOf(trusted) < newestVersion(roots) ? 'open' : 'linked';
  if (isLinked(bootstrap, roots))
    return { set: trusted, link, anchor: { version: versionOf(bootstrap), bytes: bootstrap.root.bytes } };
  // A root of another repository must never replace the history without an error.
  if (versionOf(bootstrap) <= versionOf(trusted)) throw notLinked(bootstrap, trusted, roots);
  return { set: trusted, link: 'open' };
}

/**
 * Called after the chain of the server has been followed and stored.
 * @param actual version of the last root of the chain
 * @throws WritError ROOT_NOT_LINKED if the chain does not link the bootstrap root; TRUST_STORE_DAMAGED if it does not reach the
 *   newest root that this host has accepted
 */
export function requireReached(roots: StoredRoots, actual: number): void {
  const bootstrap = trustFirstRoot(roots.bootstrap);
  if (!isLinked(bootstrap, roots)) throw notLinked(bootstrap, trustStoredRoot(roots).set, roots);
  const expected = newestVersion(roots);
  if (actual >= expected) return;
  const message = `no chain of roots leads from version ${actual} to ${expected}`;
  throw new WritError('TRUST_STORE_DAMAGED', message, {
    facts: { expected, actual },
    hint: `Copy metadata/${actual + 1}.root.json of the repository, and all later ones, to trust/roots/.`,
  });
}

/** @returns root.json, if it is a valid root that the history does not contradict */
function currentRoot(roots: StoredRoots): TrustedSet | undefined {
  const { current } = roots;
  const set = tryRoot(() => (current === undefined ? undefined : trustFirstRoot(current)));
  if (set === undefined) return undefined;
  const same = usable(roots.read(versionOf(set)), versionOf(set));
  if (same !== undefined) {
    return Buffer.from(same.root.signedBytes).equals(set.root.signedBytes) ? set : undefined;
  }
  const before = usable(roots.read(versionOf(set) - 1), versionOf(set) - 1);
  return before === undefined ? set : tryRoot(() => trustNextRoot(before, set.root.bytes));
}

/** @returns the newest valid version in the history; each stored root was signed by its own keys */
function newestVersion(roots: StoredRoots): number {
  const newest = roots.versions.findLast((version) => usable(roots.read(version), version) !== undefined);
  return newest ?? 0;
}

/** @returns true if the bootstrap root is a known root, or if signatures link it to the known root before or after it */
function isLinked(bootstrap: TrustedSet, roots: StoredRoots): boolean {
  const version = versionOf(bootstrap);
  const same = knownRoot(roots, version);
  if (same !== undefined) return Buffer.from(same).equals(bootstrap.root.bytes);
  const after = knownRoot(roots, version + 1);
  if (after !== undefined) return tryRoot(() => trustNextRoot(bootstrap, after)) !== undefined;
  const before = knownRoot(roots, version - 1);
  if (before === undefined) return false;
  return tryRoot(() => trustNextRoot(trustFirstRoot(before), bootstrap.root.bytes)) !== undefined;
}

function notLinked(bootstrap: TrustedSet, trusted: TrustedSet, roots: StoredRoots): WritError {
  const expected = versionOf(trusted);
  const actual = versionOf(bootstrap);
  const message = `the configured root (version ${actual}) is not one of the roots that this host trusts (up to version ${expected}), nor signed by them`;
  // Roots of two repositories can have the same version: only the digest distinguishes them, and a person can compare it.
  const facts = { expected: describeRoot(trusted), actual: describeRoot(bootstrap) };
  // A damaged file counts as absent: it links nothing and does not show its repository.
  const begins = roots.versions.some(
    (version) => version <= actual + 1 && knownRoot(roots, version) !== undefined,
  );
  if (begins || actual >= expected) return new WritError('ROOT_NOT_LINKED', message, { facts });
  // Only a person can distinguish a history that was lost from a root that is wrong.
  const hint = `The history in trust/roots does not reach back to it. If that directory or files of it were lost, copy the configured root to trust/roots/${actual}.root.json. If not, configure the root of this repository.`;
  return new WritError('ROOT_NOT_LINKED', message, { facts, hint });
}

function describeRoot({ root }: TrustedSet): string {
  return `version ${root.signed.version}, sha256:${createHash('sha256').update(root.bytes).digest('hex')}`;
}

/** @returns a valid root of this version, from the history or from root.json; undefined also for a damaged one */
function knownRoot(roots: StoredRoots, version: number): Uint8Array | undefined {
  const set = usable(roots.read(version), version) ?? usable(roots.current, version);
  return set?.root.bytes;
}

function usable(bytes: Uint8Array | undefined, version: number): TrustedSet | undefined {
  const set = tryRoot(() => (bytes === undefined ? undefined : trustFirstRoot(bytes)));
  return set !== undefined && versionOf(set) === version ? set : undefined;
}

/** For a damaged root.json: the root from which the chain is followed again. */
function firstOfHistory(bootstrap: TrustedSet, roots: StoredRoots): TrustedSet {
  if (isLinked(bootstrap, roots)) return bootstrap;
  for (const version of roots.versions) {
    const set = usable(roots.read(version), version);
    if (set !== undefined) return set;
  }
  const message = 'root.json is damaged and the history of roots cannot rebuild it';
  throw new WritError('TRUST_STORE_DAMAGED', message);
}

/** Verifies each link as far as the chain is valid. A kill between the two writes of a root leaves one more to follow. */
function followHistory(start: TrustedSet, roots: StoredRoots): TrustedSet {
  for (let set = start; ; ) {
    const bytes = roots.read(versionOf(set) + 1);
    const from = set;
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

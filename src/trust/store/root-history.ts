// Which root a host trusts, from what is in its store: root.json, the history, and the bootstrap root that was
// shipped with it. Owns healing of a damaged root.json and the link between bootstrap and history. Pure over
// the bytes it is given.
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
   * `open`: the bootstrap root, or a root of the history behind a hole, is newer than all that can be linked here;
   * the chain from the server has to reach it.
   */
  readonly link: 'linked' | 'open';
  /** The bootstrap root where it is linked: without its file, and that of the next, nothing would link it any more. */
  readonly anchor?: { readonly version: number; readonly bytes: Uint8Array };
}

/**
 * @throws WritError ROOT_NOT_LINKED when the bootstrap root is of another repository; TRUST_STORE_DAMAGED when
 *   neither root.json nor the history can be used; what trustFirstRoot throws about the bootstrap root
 */
export function trustStoredRoot(roots: StoredRoots): StoredTrust {
  const bootstrap = trustFirstRoot(roots.bootstrap);
  // First use: the only moment at which trust comes from the configuration alone.
  if (roots.current === undefined && roots.versions.length === 0) return { set: bootstrap, link: 'linked' };
  const trusted = followHistory(currentRoot(roots) ?? firstOfHistory(bootstrap, roots), roots);
  // What was accepted once is never gone back behind, also where the way to it is damaged.
  const link = versionOf(trusted) < newestVersion(roots) ? 'open' : 'linked';
  if (isLinked(bootstrap, roots))
    return { set: trusted, link, anchor: { version: versionOf(bootstrap), bytes: bootstrap.root.bytes } };
  // Another repository's root must never quietly take the place of the history we have.
  if (versionOf(bootstrap) <= versionOf(trusted)) throw notLinked(bootstrap, trusted, roots);
  return { set: trusted, link: 'open' };
}

/**
 * Asked after the chain of the server has been followed and stored.
 * @param actual version of the root that the chain has ended in
 * @throws WritError ROOT_NOT_LINKED when it does not lead to the bootstrap root; TRUST_STORE_DAMAGED when it does not
 *   lead to the newest root that this host has already accepted
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

/** root.json, if it is a root and nothing in the history speaks against it. */
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

/** The newest root in the store that signs itself, as every root did that was ever put there. */
function newestVersion(roots: StoredRoots): number {
  const newest = roots.versions.findLast((version) => usable(roots.read(version), version) !== undefined);
  return newest ?? 0;
}

/** @returns true if the bootstrap root is one of ours, or one signature away from one of ours */
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
  // Two repositories have roots of the same version: only the digest tells them apart, and a person can compare it.
  const facts = { expected: describeRoot(trusted), actual: describeRoot(bootstrap) };
  // A damaged file counts as absent here too: it links nothing, and says nothing of which repository it was.
  const begins = roots.versions.some(
    (version) => version <= actual + 1 && knownRoot(roots, version) !== undefined,
  );
  if (begins || actual >= expected) return new WritError('ROOT_NOT_LINKED', message, { facts });
  // Nothing says of which repository it is: only a person can tell a history that was lost from a root that is wrong.
  const hint = `The history in trust/roots does not reach back to it. If that directory or files of it were lost, copy the configured root to trust/roots/${actual}.root.json. If not, configure the root of this repository.`;
  return new WritError('ROOT_NOT_LINKED', message, { facts, hint });
}

function describeRoot({ root }: TrustedSet): string {
  return `version ${root.signed.version}, sha256:${createHash('sha256').update(root.bytes).digest('hex')}`;
}

/** A usable root of this version, from the history or from root.json; damaged ones count as absent. */
function knownRoot(roots: StoredRoots, version: number): Uint8Array | undefined {
  const set = usable(roots.read(version), version) ?? usable(roots.current, version);
  return set?.root.bytes;
}

function usable(bytes: Uint8Array | undefined, version: number): TrustedSet | undefined {
  const set = tryRoot(() => (bytes === undefined ? undefined : trustFirstRoot(bytes)));
  return set !== undefined && versionOf(set) === version ? set : undefined;
}

/** root.json is damaged: the chain begins again where trust once began. */
function firstOfHistory(bootstrap: TrustedSet, roots: StoredRoots): TrustedSet {
  if (isLinked(bootstrap, roots)) return bootstrap;
  for (const version of roots.versions) {
    const set = usable(roots.read(version), version);
    if (set !== undefined) return set;
  }
  const message = 'root.json is damaged and the history of roots cannot rebuild it';
  throw new WritError('TRUST_STORE_DAMAGED', message);
}

/** Every link is checked, as far as the chain holds. A kill between the two writes of a root leaves one to follow. */
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

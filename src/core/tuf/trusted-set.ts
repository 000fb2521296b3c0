// The rule engine of trust (TUF 1.0.34 section 5): bytes and a time in; a new trusted set, or a coded refusal,
// out. Pure: it never fetches, stores or asks the time. A set is immutable, so that a refused file changes
// nothing. Delegated roles are further files, each judged with the keys of the delegator on the way to it.
import { orUndefined, WritError } from '../errors.js';
import { given } from '../given.js';
import { parseIsoTime } from '../release/release.js';
import {
  isNamedBy,
  isVouchedByRoot,
  mix,
  refuseShrunkSnapshot,
  requireDigests,
  requireFresh,
  requireThreshold,
  requireVersion,
  rollback,
  rootAuthority,
} from './metadata-checks.js';
import {
  type MetaFile,
  type ParsedFile,
  parseEnvelope,
  type TimestampSigned,
  type TopLevelRole,
} from './tuf-metadata.js';

export interface TrustedSet {
  readonly root: ParsedFile<'root'>;
  readonly timestamp?: ParsedFile<'timestamp'>;
  readonly snapshot?: ParsedFile<'snapshot'>;
  readonly targets?: ParsedFile<'targets'>;
  /** By name, as last trusted on some way: trusted-delegations asks again on every other. */
  readonly delegated?: ReadonlyMap<string, ParsedFile<'targets'>>;
  /** Greatest `writ.signedAt` accepted, epoch milliseconds: the world is at least that old. */
  readonly clockFloorMs?: number;
}

/**
 * Trusts a root because it was shipped with the host (5.2); its expiry is not asked.
 * @throws WritError METADATA_MALFORMED, SIGNATURE_*
 */
export function trustFirstRoot(bytes: Uint8Array): TrustedSet {
  const root = parseEnvelope(bytes, 'root');
  requireThreshold(root, rootAuthority(root, 'root'));
  return { root };
}

/**
 * Follows the chain by one root (5.3.4 to 5.3.8). The expiry of roots in between is not asked (5.3.7), or a
 * host that slept for a year could never come back.
 * @throws WritError METADATA_MALFORMED, SIGNATURE_*, METADATA_ROLLBACK, METADATA_MIX
 */
export function trustNextRoot(set: TrustedSet, bytes: Uint8Array): TrustedSet {
  const root = parseEnvelope(bytes, 'root');
  // 5.3.4, stolen or invented root: the keys trusted so far must vouch for the new ones ...
  requireThreshold(root, rootAuthority(set.root, 'root'));
  // ... and the new ones for themselves: nobody is put in charge who cannot sign.
  requireThreshold(root, rootAuthority(root, 'root'));
  // 5.3.5, rollback: an old root would bring back keys that were revoked since.
  const expected = set.root.signed.version + 1;
  const actual = root.signed.version;
  if (actual < expected) throw rollback('root', expected, actual);
  // A version left out could have been the one that revoked a key.
  if (actual > expected) throw mix('root', `version ${actual} came as ${expected}`, expected, actual);
  return { ...set, root };
}

/**
 * Ends the chain: keeps of the files accepted under earlier roots only what the final root still vouches for.
 * 5.3.11, fast-forward attack: a stolen key signs a version, or a time, far ahead, so that honest metadata
 * looks old for ever. Rotating the key of timestamp or snapshot makes both files be forgotten (each carries the
 * memory of snapshot versions), and the key of the timestamp alone the clock floor with them.
 */
export function settleRoot(set: TrustedSet): TrustedSet {
  const { timestamp, snapshot, targets, root, delegated, clockFloorMs } = set;
  const settled = {
    root,
    ...given({
      targets: targets && isVouchedByRoot(targets, root) ? targets : undefined,
      // Each is asked again on the way to it.
      delegated,
    }),
  };
  if (timestamp !== undefined && !isVouchedByRoot(timestamp, root)) return settled;
  // What the timestamp key has said about time stays true when only the key of the snapshot is replaced.
  const floor = given({ clockFloorMs });
  if (snapshot !== undefined && !isVouchedByRoot(snapshot, root)) return { ...settled, ...floor };
  return { ...settled, ...given({ timestamp, snapshot }), ...floor };
}

/** What the host's own store holds; it was judged before it was put there. */
export interface StoredFiles {
  readonly timestamp?: Uint8Array;
  readonly snapshot?: Uint8Array;
  readonly targets?: Uint8Array;
  /** Kept apart only while it is above what the stored timestamp says. */
  readonly clockFloorMs?: number;
}

/**
 * Takes up the files of the store again: shape and signatures are asked, expiry is not (it is judged at use).
 * A damaged file is left out, and so fetched again.
 */
export function recallFiles(set: TrustedSet, stored: StoredFiles): TrustedSet {
  const timestamp = recallFile(stored.timestamp, 'timestamp');
  const snapshot = recallFile(stored.snapshot, 'snapshot');
  const targets = recallFile(stored.targets, 'targets');
  const recalled = { root: set.root, ...given({ snapshot, targets }) };
  if (timestamp === undefined) return settleRoot(recalled);
  const { clockFloorMs } = stored;
  return settleRoot(withTimestamp({ ...recalled, ...given({ clockFloorMs }) }, timestamp));
}

/** @returns undefined for a file that is damaged. */
export function recallFile<Role extends TopLevelRole>(
  bytes: Uint8Array | undefined,
  role: Role,
  name: string = role,
): ParsedFile<Role> | undefined {
  return bytes && orUndefined(() => parseEnvelope(bytes, role, name));
}

/**
 * 5.3.10: the final root must not have expired (freeze attack: a host that is kept from the newer root).
 * @throws WritError METADATA_EXPIRED
 */
export function requireFreshRoot(set: TrustedSet, nowMs: number): void {
  requireFresh(set.root, judgedAtMs(set, nowMs));
}

/**
 * Judges a timestamp from the server (5.4).
 * @returns the new set, or the same one when the version is the trusted one (5.4.3.1: normal, not an error)
 * @throws WritError METADATA_MALFORMED, SIGNATURE_*, METADATA_ROLLBACK, METADATA_EXPIRED
 */
export function trustTimestamp(set: TrustedSet, bytes: Uint8Array, nowMs: number): TrustedSet {
  const file = parseEnvelope(bytes, 'timestamp');
  requireThreshold(file, rootAuthority(set.root, 'timestamp'));
  const trusted = set.timestamp?.signed;
  // 5.4.3.1, rollback: a replayed timestamp would hide every release since.
  if (trusted !== undefined && file.signed.version < trusted.version) {
    throw rollback('timestamp', trusted.version, file.signed.version);
  }
  if (file.signed.version === trusted?.version) return set;
  // 5.4.3.2, rollback by a stolen timestamp key: it may not lead back to an older snapshot.
  const expected = trusted === undefined ? 0 : snapshotMeta(trusted).version;
  const actual = snapshotMeta(file.signed).version;
  if (actual < expected) throw rollback('snapshot', expected, actual);
  const next = withTimestamp(set, file);
  requireFreshTimestamp(next, nowMs);
  return next;
}

/**
 * For a timestamp that is refused already: whether it is one of those that this host had before their keys were replaced, so
 * that it is old and not forged. A newer one under those keys is the work of a stolen key.
 * @param earlier bytes of a root that this host has accepted, and of the newest timestamp that it has
 * @returns METADATA_ROLLBACK; undefined where that root does not vouch for it either
 */
export function olderTimestamp(
  set: TrustedSet,
  bytes: Uint8Array,
  earlier: { readonly root: Uint8Array; readonly seen: Uint8Array },
): WritError | undefined {
  return orUndefined(() => {
    const root = parseEnvelope(earlier.root, 'root');
    const file = parseEnvelope(bytes, 'timestamp');
    requireThreshold(file, rootAuthority(root, 'timestamp'));
    const { version } = file.signed;
    if (version > parseEnvelope(earlier.seen, 'timestamp').signed.version) return undefined;
    const [expected, actual] = [set.root.signed.version, root.signed.version];
    const text = `timestamp: version ${version} is an old copy: root version ${expected} replaced the keys that signed it`;
    const facts = { role: 'timestamp', expected, actual, version, of: 'root' };
    return new WritError('METADATA_ROLLBACK', text, { facts, hint: oldCopyHint });
  });
}

const oldCopyHint =
  'Either the server has not signed since the root was committed: `writ refresh` signs. Or a cache or mirror serves an old timestamp.json: delete it there, and shorten how long it is kept (docs/server.md).';

/**
 * 5.4.4, freeze attack: the timestamp in use, new or kept, must not have expired.
 * @throws WritError METADATA_EXPIRED; METADATA_MISSING when there is no timestamp
 */
export function requireFreshTimestamp(set: TrustedSet, nowMs: number): void {
  requireFresh(requireTrusted(set, 'timestamp'), judgedAtMs(set, nowMs));
}

/** @returns true if the snapshot at hand is the one that the timestamp names; then it need not be fetched. */
export function isSnapshotCurrent(set: TrustedSet): boolean {
  return set.snapshot !== undefined && isNamedBy(snapshotMetaOf(set), set.snapshot);
}

/**
 * Judges a snapshot from the server (5.5) against the timestamp and the snapshot trusted before.
 * @throws WritError METADATA_MIX, METADATA_MALFORMED, SIGNATURE_*, METADATA_ROLLBACK,
 *   METADATA_EXPIRED
 */
export function trustSnapshot(set: TrustedSet, bytes: Uint8Array, nowMs: number): TrustedSet {
  const meta = snapshotMetaOf(set);
  // 5.5.2: digests before parsing, so that the parser meets only bytes that were meant.
  requireDigests('snapshot', meta, bytes);
  const file = parseEnvelope(bytes, 'snapshot');
  requireThreshold(file, rootAuthority(set.root, 'snapshot'));
  requireVersion('snapshot', meta, file.signed.version);
  refuseShrunkSnapshot(set.snapshot?.signed.meta ?? {}, file.signed.meta);
  requireFresh(file, judgedAtMs(set, nowMs));
  return { ...set, snapshot: file };
}

/** @returns true if the targets at hand are those that the snapshot names; then they need not be fetched. */
export function areTargetsCurrent(set: TrustedSet): boolean {
  return set.targets !== undefined && isNamedBy(targetsMetaOf(set), set.targets);
}

/**
 * Judges the top-level targets from the server (5.6).
 * @throws WritError METADATA_MIX, METADATA_MALFORMED, SIGNATURE_*, METADATA_EXPIRED
 */
export function trustTargets(set: TrustedSet, bytes: Uint8Array, nowMs: number): TrustedSet {
  const meta = targetsMetaOf(set);
  requireDigests('targets', meta, bytes);
  const file = parseEnvelope(bytes, 'targets');
  requireThreshold(file, rootAuthority(set.root, 'targets'));
  // 5.6.4, mix-and-match: rollback of targets is refused here, as the snapshot's versions only grow.
  requireVersion('targets', meta, file.signed.version);
  requireFresh(file, judgedAtMs(set, nowMs));
  return { ...set, targets: file };
}

/**
 * Judges files that were kept and are used again without a fetch: they may have expired since.
 * @throws WritError METADATA_EXPIRED
 */
export function requireFreshFile(set: TrustedSet, role: 'snapshot' | 'targets', nowMs: number): void {
  requireFresh(requireTrusted(set, role), judgedAtMs(set, nowMs));
}

/** The metadata that bounds the fetch of a snapshot: version, and length where it is signed. */
export function snapshotMetaOf(set: TrustedSet): MetaFile {
  return snapshotMeta(requireTrusted(set, 'timestamp').signed);
}

/** The metadata that bounds the fetch of the top-level targets. */
export function targetsMetaOf(set: TrustedSet): MetaFile {
  const meta = requireTrusted(set, 'snapshot').signed.meta['targets.json'];
  if (meta !== undefined) return meta;
  throw new WritError('INTERNAL', 'a parsed snapshot names no targets');
}

/** `writ.signedAt` of a file in epoch milliseconds; undefined in repositories of other publishers. */
export function signedAtMsOf(file: ParsedFile<TopLevelRole> | undefined): number | undefined {
  return parseIsoTime((file?.signed as Pick<TimestampSigned, 'writ'> | undefined)?.writ?.signedAt);
}

function withTimestamp(set: TrustedSet, timestamp: ParsedFile<'timestamp'>): TrustedSet {
  const floorMs = Math.max(set.clockFloorMs ?? 0, signedAtMsOf(timestamp) ?? 0);
  return { ...set, timestamp, ...(floorMs > 0 ? { clockFloorMs: floorMs } : {}) };
}

/** A clock set back would make expired metadata fresh again: time never runs behind what was signed. */
export function judgedAtMs(set: TrustedSet, nowMs: number): number {
  return Math.max(nowMs, set.clockFloorMs ?? 0);
}

function snapshotMeta(timestamp: TimestampSigned): MetaFile {
  return timestamp.meta['snapshot.json'];
}

/** @throws WritError INTERNAL when it is not there: the order of the workflow is the caller's duty */
export function requireTrusted<Role extends 'timestamp' | 'snapshot' | 'targets'>(
  set: TrustedSet,
  role: Role,
): ParsedFile<Role> {
  const file = set[role];
  if (file === undefined) throw new WritError('INTERNAL', `no ${role} is trusted yet`);
  return file as unknown as ParsedFile<Role>;
}

// The client workflow of TUF (1.0.34 section 5). Each function takes bytes and a time, and returns a new trusted set or throws. It
// fetches and stores nothing. Sets are immutable, so that a rejected file changes nothing. trusted-delegations.ts has the rules for
// delegated roles.
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
  /** By name, as last verified for some delegator. trusted-delegations.ts verifies a file again for each other delegator. */
  readonly delegated?: ReadonlyMap<string, ParsedFile<'targets'>>;
  /** Clock floor: the greatest accepted `writ.signedAt`, epoch milliseconds. The real time cannot be earlier. */
  readonly clockFloorMs?: number;
}

/**
 * Trusts the configured root (5.2). Its expiry is not checked.
 * @throws WritError METADATA_MALFORMED, SIGNATURE_*
 */
export function trustFirstRoot(bytes: Uint8Array): TrustedSet {
  const root = parseEnvelope(bytes, 'root');
  requireThreshold(root, rootAuthority(root, 'root'));
  return { root };
}

/**
 * Follows the chain by one root (5.3.4 to 5.3.8). The expiry of intermediate roots is not checked (5.3.7), because a host that was
 * offline for a year could otherwise never refresh.
 * @throws WritError METADATA_MALFORMED, SIGNATURE_*, METADATA_ROLLBACK, METADATA_MIX
 */
export function trustNextRoot(set: TrustedSet, bytes: Uint8Array): TrustedSet {
  const root = parseEnvelope(bytes, 'root');
  // 5.3.4, forged root: the trusted keys must sign the new root.
  requireThreshold(root, rootAuthority(set.root, 'root'));
  // The keys of the new root must sign it too, because keys that cannot sign must not become the authority.
  requireThreshold(root, rootAuthority(root, 'root'));
  // 5.3.5, rollback attack: an old root would restore keys that were revoked since.
  const expected = set.root.signed.version + 1;
  const actual = root.signed.version;
  if (actual < expected) throw rollback('root', expected, actual);
  // The missing version could be the one that revoked a key.
  if (actual > expected) throw mix('root', `version ${actual} came as ${expected}`, expected, actual);
  return { ...set, root };
}

/**
 * Completes the chain: keeps only those files that the authority of the final root signed.
 * 5.3.11, fast-forward attack: with a stolen key the attacker signs a version or a time far ahead, so that honest metadata appears
 * old forever. When a root replaces the key of timestamp or snapshot, both files are deleted, because each contains versions of the
 * snapshot. When it replaces the key of the timestamp, the clock floor is deleted too.
 */
export function settleRoot(set: TrustedSet): TrustedSet {
  const { timestamp, snapshot, targets, root, delegated, clockFloorMs } = set;
  const settled = {
    root,
    ...given({
      targets: targets && isVouchedByRoot(targets, root) ? targets : undefined,
      // keptDelegated verifies each of them again before it is used.
      delegated,
    }),
  };
  if (timestamp !== undefined && !isVouchedByRoot(timestamp, root)) return settled;
  // The times that the timestamp key signed stay valid if only the key of the snapshot is replaced.
  const floor = given({ clockFloorMs });
  if (snapshot !== undefined && !isVouchedByRoot(snapshot, root)) return { ...settled, ...floor };
  return { ...settled, ...given({ timestamp, snapshot }), ...floor };
}

/** Contents of the trust store. These files were verified before they were stored. */
export interface StoredFiles {
  readonly timestamp?: Uint8Array;
  readonly snapshot?: Uint8Array;
  readonly targets?: Uint8Array;
  /** Stored separately only while it is above the time in the stored timestamp. */
  readonly clockFloorMs?: number;
}

/**
 * Restores the set from the trust store. Structure and signatures are verified again; expiry is checked when a file is used. A
 * damaged file is left out and so fetched again.
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

/** @returns undefined for a missing or damaged file */
export function recallFile<Role extends TopLevelRole>(
  bytes: Uint8Array | undefined,
  role: Role,
  name: string = role,
): ParsedFile<Role> | undefined {
  return bytes && orUndefined(() => parseEnvelope(bytes, role, name));
}

/**
 * 5.3.10: the final root must not have expired. An expired root may be a freeze attack, which withholds newer roots from the host.
 * @throws WritError METADATA_EXPIRED
 */
export function requireFreshRoot(set: TrustedSet, nowMs: number): void {
  requireFresh(set.root, judgedAtMs(set, nowMs));
}

/**
 * Verifies a fetched timestamp (5.4).
 * @returns the new set; the same set if the version is the trusted one (5.4.3.1), which is no error
 * @throws WritError METADATA_MALFORMED, SIGNATURE_*, METADATA_ROLLBACK, METADATA_EXPIRED
 */
export function trustTimestamp(set: TrustedSet, bytes: Uint8Array, nowMs: number): TrustedSet {
  const file = parseEnvelope(bytes, 'timestamp');
  requireThreshold(file, rootAuthority(set.root, 'timestamp'));
  const trusted = set.timestamp?.signed;
  // 5.4.3.1, rollback attack: a replayed timestamp would hide each release since then.
  if (trusted !== undefined && file.signed.version < trusted.version) {
    throw rollback('timestamp', trusted.version, file.signed.version);
  }
  if (file.signed.version === trusted?.version) return set;
  // 5.4.3.2, rollback attack with a stolen timestamp key: the listed snapshot must not be older.
  const expected = trusted === undefined ? 0 : snapshotMeta(trusted).version;
  const actual = snapshotMeta(file.signed).version;
  if (actual < expected) throw rollback('snapshot', expected, actual);
  const next = withTimestamp(set, file);
  requireFreshTimestamp(next, nowMs);
  return next;
}

/**
 * Distinguishes an old timestamp from a forged one, after its signatures were rejected. It is old if an earlier root lists its keys,
 * and this host had accepted a timestamp of at least that version. With a higher version it is forged by a stolen key.
 * @param earlier bytes of a root that this host accepted, and of the newest timestamp that it accepted
 * @returns METADATA_ROLLBACK for an old timestamp; undefined otherwise
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
 * 5.4.4, freeze attack: the timestamp in use, fetched or stored, must not have expired.
 * @throws WritError METADATA_EXPIRED; METADATA_MISSING when there is no timestamp
 */
export function requireFreshTimestamp(set: TrustedSet, nowMs: number): void {
  requireFresh(requireTrusted(set, 'timestamp'), judgedAtMs(set, nowMs));
}

/** @returns true if the snapshot in the set is the one that the timestamp lists; it is then not fetched */
export function isSnapshotCurrent(set: TrustedSet): boolean {
  return set.snapshot !== undefined && isNamedBy(snapshotMetaOf(set), set.snapshot);
}

/**
 * Verifies a fetched snapshot (5.5) against the timestamp and the trusted snapshot.
 * @throws WritError METADATA_MIX, METADATA_MALFORMED, SIGNATURE_*, METADATA_ROLLBACK, METADATA_EXPIRED
 */
export function trustSnapshot(set: TrustedSet, bytes: Uint8Array, nowMs: number): TrustedSet {
  const meta = snapshotMetaOf(set);
  // 5.5.2: verify digests before parsing, so that the parser reads only the expected bytes.
  requireDigests('snapshot', meta, bytes);
  const file = parseEnvelope(bytes, 'snapshot');
  requireThreshold(file, rootAuthority(set.root, 'snapshot'));
  requireVersion('snapshot', meta, file.signed.version);
  refuseShrunkSnapshot(set.snapshot?.signed.meta ?? {}, file.signed.meta);
  requireFresh(file, judgedAtMs(set, nowMs));
  return { ...set, snapshot: file };
}

/** @returns true if the targets in the set are those that the snapshot lists; they are then not fetched */
export function areTargetsCurrent(set: TrustedSet): boolean {
  return set.targets !== undefined && isNamedBy(targetsMetaOf(set), set.targets);
}

/**
 * Verifies the fetched top-level targets (5.6).
 * @throws WritError METADATA_MIX, METADATA_MALFORMED, SIGNATURE_*, METADATA_EXPIRED
 */
export function trustTargets(set: TrustedSet, bytes: Uint8Array, nowMs: number): TrustedSet {
  const meta = targetsMetaOf(set);
  requireDigests('targets', meta, bytes);
  const file = parseEnvelope(bytes, 'targets');
  requireThreshold(file, rootAuthority(set.root, 'targets'));
  // 5.6.4, mix-and-match attack. This also rejects a rollback of the targets, because versions in the snapshot only grow.
  requireVersion('targets', meta, file.signed.version);
  requireFresh(file, judgedAtMs(set, nowMs));
  return { ...set, targets: file };
}

/**
 * Checks the expiry of a stored file that is used without a fetch.
 * @throws WritError METADATA_EXPIRED
 */
export function requireFreshFile(set: TrustedSet, role: 'snapshot' | 'targets', nowMs: number): void {
  requireFresh(requireTrusted(set, role), judgedAtMs(set, nowMs));
}

/** @returns the entry of the snapshot, which bounds its fetch: version, and length if it is signed */
export function snapshotMetaOf(set: TrustedSet): MetaFile {
  return snapshotMeta(requireTrusted(set, 'timestamp').signed);
}

/** @returns the entry of the top-level targets, which bounds their fetch */
export function targetsMetaOf(set: TrustedSet): MetaFile {
  const meta = requireTrusted(set, 'snapshot').signed.meta['targets.json'];
  if (meta !== undefined) return meta;
  throw new WritError('INTERNAL', 'a parsed snapshot names no targets');
}

/** @returns `writ.signedAt` of a file in epoch milliseconds; undefined for repositories of other publishers */
export function signedAtMsOf(file: ParsedFile<TopLevelRole> | undefined): number | undefined {
  return parseIsoTime((file?.signed as Pick<TimestampSigned, 'writ'> | undefined)?.writ?.signedAt);
}

function withTimestamp(set: TrustedSet, timestamp: ParsedFile<'timestamp'>): TrustedSet {
  const floorMs = Math.max(set.clockFloorMs ?? 0, signedAtMsOf(timestamp) ?? 0);
  return { ...set, timestamp, ...(floorMs > 0 ? { clockFloorMs: floorMs } : {}) };
}

/**
 * @returns the time for expiry checks: never earlier than the clock floor, because a clock that is set back would make expired
 *   metadata valid again
 */
export function judgedAtMs(set: TrustedSet, nowMs: number): number {
  return Math.max(nowMs, set.clockFloorMs ?? 0);
}

function snapshotMeta(timestamp: TimestampSigned): MetaFile {
  return timestamp.meta['snapshot.json'];
}

/**
 * @returns the file of the role in the set, as it was accepted before: not verified again, not checked for expiry
 * @throws WritError INTERNAL if the set has no such file: the caller must follow the order of the workflow
 */
export function requireTrusted<Role extends 'timestamp' | 'snapshot' | 'targets'>(
  set: TrustedSet,
  role: Role,
): ParsedFile<Role> {
  const file = set[role];
  if (file === undefined) throw new WritError('INTERNAL', `no ${role} is trusted yet`);
  return file as unknown as ParsedFile<Role>;
}

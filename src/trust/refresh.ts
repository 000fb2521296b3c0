// One refresh of the metadata (specification 5.1 to 5.6): root chain, timestamp, snapshot and targets, one request at a time.
// Fetches under bounds, verifies with trusted-set.ts, and returns each accepted role to the caller, which stores it.
import { isWritError, WritError } from '../core/errors.js';
import type { MetadataLimits } from '../core/limits.js';
import {
  areTargetsCurrent,
  isSnapshotCurrent,
  olderTimestamp,
  requireFreshFile,
  requireFreshRoot,
  requireFreshTimestamp,
  settleRoot,
  snapshotMetaOf,
  type TrustedSet,
  targetsMetaOf,
  trustNextRoot,
  trustSnapshot,
  trustTargets,
  trustTimestamp,
} from '../core/tuf/trusted-set.js';
import type { TopLevelRole } from '../core/tuf/tuf-metadata.js';
import { createRequester, fetchListed, type Requester, requireFound } from './metadata-requests.js';
import type { RepositorySource } from './sources/source.js';
import { findBelowFloor } from './store/floor-rules.js';
import type { TrustStore } from './store/trust-store.js';

export interface KnownEtag {
  readonly value: string;
  /** The trusted timestamp with this ETag. */
  readonly timestamp: Uint8Array;
}

export interface RefreshContext {
  readonly source: RepositorySource;
  readonly store: Pick<TrustStore, 'requireLinked' | 'loadEarlierRoot' | 'loadFiles' | 'floors'>;
  readonly limits: MetadataLimits;
  /** Fixed for the whole refresh (5.1), so that a slow server cannot change which files have expired. */
  readonly nowMs: number;
  /** Called with each verified set, before the next request. */
  accept(set: TrustedSet): void;
  readonly etag: KnownEtag | undefined;
  readonly signal: AbortSignal | undefined;
}

export interface Refreshed {
  readonly set: TrustedSet;
  readonly etag: KnownEtag | undefined;
  readonly requests: number;
}

/**
 * Refreshes root, timestamp, snapshot and targets in this order, and passes the trusted set to `context.accept` after
 * each accepted file.
 * @param before the trusted metadata that this refresh begins with
 * @returns the trusted metadata after it, the ETag of the timestamp and the number of requests
 * @throws WritError each code of trust and transport
 */
export async function refreshMetadata(before: TrustedSet, context: RefreshContext): Promise<Refreshed> {
  const requester = createRequester(context.source, context.signal);
  const rooted = settleRoot(await followRoots(before, context, requester));
  context.store.requireLinked(rooted.root.signed.version);
  requireFloor(rooted, 'root', context);
  requireFreshRoot(rooted, context.nowMs);
  const timestamped = await refreshTimestamp(rooted, context, requester);
  const snapshotted = await refreshSnapshot(timestamped.set, context, requester);
  const set = await refreshTargets(snapshotted, context, requester);
  return { set, etag: timestamped.etag, requests: requester.requests() };
}

async function followRoots(
  trusted: TrustedSet,
  context: RefreshContext,
  requester: Requester,
): Promise<TrustedSet> {
  const { maxRootBytes, maxRootRotations } = context.limits;
  let set = trusted;
  for (let rotations = 0; ; rotations += 1) {
    const name = `${set.root.signed.version + 1}.root.json`;
    const verdict = await requester
      .fetch(name, { maxBytes: maxRootBytes })
      .catch((error: unknown) => Promise.reject(withListHint(error)));
    // Only an absent file ends the chain: any other failure could hide the root that revokes a stolen key.
    if (verdict.kind !== 'found') return set;
    // An error, because an attacker who publishes many roots wants hosts to continue with an older one.
    if (rotations === maxRootRotations) throw chainTooLong(maxRootRotations, set);
    const [before, { bytes }] = [set, verdict];
    set = await requester.naming(name, () => trustNextRoot(before, bytes));
    context.accept(set);
  }
}

interface Timestamped {
  readonly set: TrustedSet;
  readonly etag: KnownEtag | undefined;
}

async function refreshTimestamp(
  set: TrustedSet,
  context: RefreshContext,
  requester: Requester,
): Promise<Timestamped> {
  const maxBytes = context.limits.maxTimestampBytes;
  // "Not modified" proves nothing if a new root caused the timestamp to be deleted: then it is requested without an ETag.
  const etag = context.etag?.timestamp === set.timestamp?.bytes ? context.etag : undefined;
  const options = etag === undefined ? { maxBytes } : { maxBytes, etag: etag.value };
  const verdict = await requester.fetch('timestamp.json', options);
  if (verdict.kind === 'not-modified') {
    requireFloor(set, 'timestamp', context);
    requireFreshTimestamp(set, context.nowMs);
    return { set, etag };
  }
  const found = await requester.naming('timestamp.json', () => {
    const { bytes, etag: value } = requireFound(verdict, 'timestamp', 'timestamp.json');
    const next = requireFloor(judgeTimestamp(set, bytes, context), 'timestamp', context);
    requireFreshTimestamp(next, context.nowMs);
    return { bytes, value, next };
  });
  const { bytes, value, next } = found;
  if (next !== set) context.accept(next);
  const kept = next.timestamp?.bytes;
  const known = value !== undefined && kept !== undefined && bytes.equals(kept);
  return { set: next, etag: known ? { value, timestamp: kept } : undefined };
}

/** Number of earlier roots that are tried for an old copy of the timestamp. */
const maxEarlierRoots = 8;

/**
 * Distinguishes a cache with a timestamp from before a key rotation from a forged timestamp: both are rejected, with different
 * codes.
 */
function judgeTimestamp(set: TrustedSet, bytes: Uint8Array, { nowMs, store }: RefreshContext): TrustedSet {
  try {
    return trustTimestamp(set, bytes, nowMs);
  } catch (error) {
    if (!isWritError(error) || !error.code.startsWith('SIGNATURE_')) throw error;
    const { version } = set.root.signed;
    const seen = store.loadFiles().timestamp;
    for (let earlier = version - 1; earlier >= Math.max(1, version - maxEarlierRoots); earlier -= 1) {
      const root = store.loadEarlierRoot(earlier);
      const older = root && seen && olderTimestamp(set, bytes, { root, seen });
      if (older !== undefined) throw older;
    }
    throw error;
  }
}

const listHint =
  'A root that is not there must be 404. Give the account of the web server the permission to list the objects of the store (docs/server.md), or read the log of the server.';

/**
 * Adds a hint for object stores: each refresh requests the next root, which mostly does not exist, and a store without the
 * permission to list responds with another status than 404.
 */
function withListHint(error: unknown): unknown {
  if (!isWritError(error) || error.code !== 'SERVER_ERROR') return error;
  const { code, message, facts } = error;
  // The status may be from a proxy.
  const isHidden = facts['proxy'] === undefined && [204, 401, 403, 410].includes(Number(facts['status']));
  return isHidden ? new WritError(code, message, { facts, hint: listHint, cause: error }) : error;
}

async function refreshSnapshot(
  set: TrustedSet,
  context: RefreshContext,
  requester: Requester,
): Promise<TrustedSet> {
  if (isSnapshotCurrent(set)) {
    requireFloor(set, 'snapshot', context);
    requireFreshFile(set, 'snapshot', context.nowMs);
    return set;
  }
  const maxBytes = context.limits.maxSnapshotBytes;
  const file = { set, role: 'snapshot', meta: snapshotMetaOf(set), maxBytes };
  const next = await fetchListed(file, requester, (bytes) =>
    requireFloor(trustSnapshot(set, bytes, context.nowMs), 'snapshot', context),
  );
  context.accept(next);
  return next;
}

async function refreshTargets(
  set: TrustedSet,
  context: RefreshContext,
  requester: Requester,
): Promise<TrustedSet> {
  if (areTargetsCurrent(set)) {
    requireFloor(set, 'targets', context);
    requireFreshFile(set, 'targets', context.nowMs);
    return set;
  }
  const maxBytes = context.limits.maxTargetsBytes;
  const file = { set, role: 'targets', meta: targetsMetaOf(set), maxBytes };
  const next = await fetchListed(file, requester, (bytes) =>
    requireFloor(trustTargets(set, bytes, context.nowMs), 'targets', context),
  );
  context.accept(next);
  return next;
}

/**
 * @returns the set
 * @throws WritError METADATA_ROLLBACK if this boot has accepted a newer file of the role
 */
function requireFloor(set: TrustedSet, role: TopLevelRole, { store }: RefreshContext): TrustedSet {
  const error = findBelowFloor(set, role, store.floors());
  if (error !== undefined) throw error;
  return set;
}

function chainTooLong(maxRootRotations: number, set: TrustedSet): WritError {
  const actual = set.root.signed.version;
  const message = `more than ${maxRootRotations} new roots, version ${actual} is kept`;
  const facts = { expected: maxRootRotations, rootVersion: actual };
  return new WritError('ROOT_CHAIN_TOO_LONG', message, { facts });
}

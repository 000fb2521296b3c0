// Verifies the next repository with the client of the hosts, before its timestamp is published: once as a new host, and once
// as a host that has accepted the published files. Writes nothing.
import { pathToFileURL } from 'node:url';
import { isWritError, WritError } from '../../core/errors.js';
import { digestHex } from '../../core/names.js';
import { openTargetDigest } from '../../core/tuf/target-digest.js';
import type { ParsedFile } from '../../core/tuf/tuf-metadata.js';
import type { Clock } from '../../platform/time/clock.js';
import { openRepositoryClient, type RepositoryClient } from '../../trust/repository-client.js';
import { deltaLocation } from '../../trust/signed-target.js';
import { overlaySource } from '../../trust/sources/overlay-source.js';
import { openRepositorySource } from '../../trust/sources/repository-source.js';
import { memoryTrustStore, type TrustStore } from '../../trust/store/trust-store.js';
import { type ListedRelease, liveReleasesOf } from '../repository/listing.js';
import type { VersionedFile } from '../repository/metadata-content.js';
import { metadataName } from '../repository/repository-layout.js';
import { invalid, type RepositoryState } from '../repository/repository-state.js';
import { measureSignedAheadMs, signedAheadHint } from './signing-time.js';

interface SimulatedRepository {
  /** The directory of the repository. */
  readonly directory: string;
  /** Files that are not in the directory yet, by path, as `metadata/timestamp.json`. */
  readonly overlay?: ReadonlyMap<string, Uint8Array>;
  readonly clock: Clock;
}

/** @param act calls its argument with a trust store in memory, once for each simulated host */
async function runAsHosts(
  { directory, overlay = new Map(), clock }: SimulatedRepository,
  act: (refreshed: (store: TrustStore) => Promise<RepositoryClient>) => Promise<unknown>,
): Promise<void> {
  const files = openRepositorySource(pathToFileURL(directory).href, { clock, version: 'self-check' });
  const source = overlaySource(files, overlay);
  try {
    await act(async (store) => {
      const client = openRepositoryClient({ source, store, clock });
      await client.refresh({ conditional: 'no' });
      return client;
    });
  } finally {
    await source.close();
  }
}

/**
 * Refreshes as a host without any metadata, and reads no archive.
 * @param anchor the root that the host is shipped with
 * @throws WritError the error of the host: METADATA_*, SIGNATURE_*, ROOT_CHAIN_TOO_LONG, DOWNLOAD_TOO_LARGE
 */
export function refreshAsNewHost(anchor: Uint8Array, place: SimulatedRepository): Promise<void> {
  return runAsHosts(place, (refreshed) => refreshed(memoryTrustStore(anchor)));
}

interface NextFiles {
  readonly state: RepositoryState;
  /** Not published yet. */
  readonly timestamp: Uint8Array;
  /** The snapshot that the timestamp lists, where it is not on disk yet. The files that it lists are on disk. */
  readonly snapshot?: VersionedFile | undefined;
  /** The next root of a ceremony, not published yet; undefined outside a ceremony. */
  readonly next?: ParsedFile<'root'> | undefined;
  readonly clock: Clock;
}

/**
 * Refreshes from the new files before they are published, as hosts would, so that no release is published that hosts
 * refuse.
 * @throws WritError REPOSITORY_INVALID; its fact `clientCode` is the code of the client's error
 */
export async function verifyAsClient({ state, timestamp, snapshot, next, clock }: NextFiles): Promise<void> {
  const overlay = new Map([['metadata/timestamp.json', timestamp]]);
  if (snapshot !== undefined)
    overlay.set(`metadata/${metadataName('snapshot', snapshot.version)}`, snapshot.bytes);
  if (next !== undefined) overlay.set(`metadata/${metadataName('root', next.signed.version)}`, next.bytes);
  try {
    await runAsHosts({ directory: state.layout.directory, overlay, clock }, async (refreshed) => {
      const newHost = await refreshed(memoryTrustStore(state.anchor));
      for (const entry of findChangedReleases(state)) await verifyFiles(newHost, entry);
      await refreshed(buildTrustStore(state));
    });
  } catch (error) {
    throw addSignedAheadHint(invalid(error), state, clock);
  }
}

/** Hosts compare expiry with the latest signing time, so that a role may be expired for them and not for this clock. */
function addSignedAheadHint(error: unknown, state: RepositoryState, clock: Clock): unknown {
  if (!isWritError(error) || error.facts['clientCode'] !== 'METADATA_EXPIRED') return error;
  if (measureSignedAheadMs(state, clock.nowMs()) === undefined) return error;
  const { code, message, facts } = error;
  return new WritError(code, message, { facts, hint: signedAheadHint, cause: error });
}

/** @returns the releases that are not published yet; the archives of published releases were verified before */
function findChangedReleases(state: RepositoryState): readonly ListedRelease[] {
  const before = new Map(liveReleasesOf(state).map((entry) => [entry.path, entry]));
  const next = { ...state, live: { ...state.live, targets: state.targets, delegated: state.delegated } };
  return liveReleasesOf(next).filter(({ path, role, file }) => {
    const known = before.get(path);
    return known?.role !== role || known.file.hashes['sha256'] !== file.hashes['sha256'];
  });
}

async function verifyFiles(client: RepositoryClient, { release, role }: ListedRelease): Promise<void> {
  const { bundle, channel } = release;
  const target = await client.target(bundle, channel);
  if (target?.vouchedBy.role !== role) {
    throw new WritError('TARGET_UNKNOWN', `${bundle}/${channel} is missing in ${role}`, {
      facts: { bundle, channel },
    });
  }
  const digest = openTargetDigest(target.path, target.file);
  for await (const chunk of client.streamTarget(target)) digest.update(chunk);
  digest.requireSame();
  for (const delta of target.release.deltas ?? []) {
    const { length } = delta;
    const file = { length, hashes: { sha256: digestHex(delta.digest) } };
    const part = openTargetDigest(`${target.path}, delta`, file);
    const archivePath = deltaLocation(target, delta);
    for await (const chunk of client.streamTarget({ ...target, length, archivePath })) part.update(chunk);
    part.requireSame();
  }
}

function buildTrustStore({ anchor, live }: RepositoryState): TrustStore {
  const store = memoryTrustStore(anchor);
  store.saveRoot(live.root.signed.version, live.root.bytes);
  for (const role of ['timestamp', 'snapshot', 'targets'] as const) store.saveFile(role, live[role].bytes);
  for (const [role, file] of live.delegated) store.saveDelegated(role, file.bytes);
  return store;
}

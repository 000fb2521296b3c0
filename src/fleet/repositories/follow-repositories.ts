// Refreshes each configured repository at an interval, with the client that hosts use, and stores its offered releases. Owns the
// schedule and the directories of trusted metadata. An error is logged and retried: it never ends the server.
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { type ErrorCode, toWritError } from '../../core/errors.js';
import type { SignedRole } from '../../core/fleet/signed-releases.js';
import { given } from '../../core/given.js';
import { writVersion } from '../../core/version.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { type ProcessLock, takeLock } from '../../platform/disk/process-lock.js';
import { requireStateDirectory } from '../../platform/disk/state-directory.js';
import type { Logger } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { openRepositoryClient, type RepositoryClient } from '../../trust/repository-client.js';
import { openRepositorySource } from '../../trust/sources/repository-source.js';
import type { RepositorySource } from '../../trust/sources/source.js';
import { openTrustStore } from '../../trust/store/trust-store.js';
import type { FleetStore } from '../store/open-store.js';
import { readOfferedReleases } from './read-offered-releases.js';
import type { RefreshTrigger } from './refresh-trigger.js';
import { readView, saveView } from './repository-views.js';
import { applyReading, emptyView, type RepositoryReading } from './view-rules.js';

export interface FollowedRepository {
  readonly url: string;
  /** URLs of the same repository on other servers, used when the first one fails. */
  readonly mirrors?: readonly string[];
  /** PEM of the certificate authorities for this repository and its mirrors; undefined: those of the system. */
  readonly ca?: string;
  /** Absolute path of the root metadata that trust begins with. */
  readonly rootFile: string;
}

export interface OpenedRepository extends Pick<FollowedRepository, 'url' | 'rootFile'> {
  readonly source: RepositorySource;
  readonly mirrors: readonly RepositorySource[];
}

export interface FollowOptions {
  /** Absolute path of the directory for trusted metadata. It is created if it is missing; its parent must exist. */
  readonly state: string;
  readonly everyMs: number;
  /** Undefined: a repository is refreshed at its interval only. */
  readonly refreshTrigger?: RefreshTrigger;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** The least time between two refreshes of a repository, so that many waiting clients do not overload its server. */
const minGapMs = 5_000;

/** Opens the sources without a request. @throws WritError CONFIG_INVALID for an invalid URL */
export function openRepositories(
  repositories: readonly FollowedRepository[],
  clock: Clock,
): readonly OpenedRepository[] {
  return repositories.map(({ url, rootFile, mirrors = [], ca }) => {
    const options = { clock, version: writVersion, ...given({ ca }) };
    const mirrorSources = mirrors.map((mirror) => openRepositorySource(mirror, options));
    return { url, rootFile, source: openRepositorySource(url, options), mirrors: mirrorSources };
  });
}

/** Refreshes repositories until the signal aborts. @throws WritError PATH_UNSAFE before the first request */
export function followRepositories(
  store: Pick<FleetStore, 'db'>,
  repositories: readonly OpenedRepository[],
  options: FollowOptions,
): Promise<unknown> {
  const { signal, refreshTrigger } = options;
  // A sleeping loop wakes only for its trigger, so that an abort has to be a trigger too.
  signal.addEventListener('abort', () => refreshTrigger?.request(), { once: true });
  const readers = repositories.map((one) => openRepositoryReader(store, one, options));
  return Promise.all(readers.map((reader) => readRepeatedly(reader, options)));
}

export interface RepositoryReader {
  /** Refreshes the repository once and stores the result. */
  read(): Promise<void>;
  close(): Promise<void>;
}

async function readRepeatedly(
  reader: RepositoryReader,
  { everyMs, refreshTrigger, clock, log, signal }: FollowOptions,
): Promise<void> {
  const gapMs = Math.min(everyMs, minGapMs);
  while (!signal.aborted) {
    // Taken before the refresh, because a request during it needs the next refresh.
    const requested = refreshTrigger?.nextRequest() ?? signal;
    await reader.read().catch((error: unknown) => {
      if (!signal.aborted) log.error({ err: error }, 'the metadata of a repository was not stored');
    });
    await clock.sleep(gapMs, signal);
    if (everyMs > gapMs) await clock.sleep(everyMs - gapMs, requested);
  }
  await reader.close();
}

/**
 * Opens the directory of trusted metadata of one repository, under a digest of its URL. `read` refreshes the metadata
 * and stores the view.
 * `read` records a failed refresh in the view and throws only when the view cannot be stored.
 */
export function openRepositoryReader(
  { db }: Pick<FleetStore, 'db'>,
  { source, mirrors, rootFile }: Pick<OpenedRepository, 'source' | 'mirrors' | 'rootFile'>,
  options: Omit<FollowOptions, 'everyMs' | 'refreshTrigger'>,
): RepositoryReader {
  const { clock, log, signal } = options;
  const id = computeDigest(Buffer.from(source.location)).slice(0, 16);
  const roots = new Set<string>();
  const directory = openRepositoryDirectory(join(options.state, id), options);
  const files = openTrustStore({
    directory: directory.trust,
    bootstrapRoot: rootFile,
    fs: directory.durable,
  });
  const store: typeof files = {
    ...files,
    // A refresh saves each root of its chain here, in order: hosts may still use one of them.
    saveRoot: (version, bytes) => {
      files.saveRoot(version, bytes);
      roots.add(computeDigest(bytes));
    },
  };
  const client = openRepositoryClient({ source, mirrors: mirrors, store, clock });
  const read = async (): Promise<void> => {
    const atMs = clock.nowMs();
    const before = (await readView(db, id)) ?? emptyView(source.location);
    const reading = await readOnce(client, {
      atMs,
      known: before.entries,
      prepare: directory.prepare,
      signal,
    });
    // The server is ending, so the failure is not one of the repository.
    if (signal.aborted) return;
    const { failure, ...seen } = reading;
    // Another process of this state directory refreshes the repository.
    if (failure?.code === 'LOCK_HELD') return;
    if (failure !== undefined && failure.code !== before.failing?.code)
      log.error({ url: source.location, code: failure.code, ...failure.facts }, failure.message);
    if (failure === undefined && before.failing !== undefined)
      log.info({ url: source.location }, 'the repository can be read again');
    await saveView(db, id, applyReading(before, { ...seen, roots: [...roots] }));
  };
  return {
    read,
    close: async () => {
      await client.close();
      directory.close();
    },
  };
}

interface ReadOptions {
  readonly atMs: number;
  readonly known: Parameters<typeof readOfferedReleases>[1];
  prepare(): Promise<void>;
  readonly signal: AbortSignal;
}

async function readOnce(
  client: RepositoryClient,
  { atMs, known, prepare, signal }: ReadOptions,
): Promise<
  Omit<RepositoryReading, 'roots'> & {
    readonly failure?: { code: ErrorCode; message: string; facts: object };
  }
> {
  try {
    await prepare();
    await client.refresh({ signal });
    const offered = await readOfferedReleases(client, known, signal);
    const { firstError } = offered;
    const failed = firstError === undefined ? {} : { code: firstError.code, failure: firstError };
    return { atMs, roles: collectRoles(client), offered, ...failed };
  } catch (error) {
    const failure = toWritError(error);
    return { atMs, roles: readTrustedRoles(client), code: failure.code, failure };
  }
}

function collectRoles(client: RepositoryClient): SignedRole[] {
  const { roles = {}, delegated = {} } = client.status() ?? {};
  return Object.entries({ ...delegated, ...roles }).map(([role, status]) => ({ role, ...status }));
}

/** @returns the roles that are trusted after a failed refresh; none when the store cannot be read */
function readTrustedRoles(client: RepositoryClient): SignedRole[] {
  try {
    return collectRoles(client);
  } catch {
    return [];
  }
}

/** The directory of one repository, with the lock that lets one process write it. */
function openRepositoryDirectory(
  directory: string,
  { state, clock, signal }: Pick<FollowOptions, 'state' | 'clock' | 'signal'>,
) {
  const durable = createDurableFs();
  const trust = join(directory, 'trust');
  // Checked at the start, because a server that cannot store metadata safely must end with this code.
  for (const path of [state, directory, trust, join(trust, 'roots')])
    requireStateDirectory(path, 'writ fleet');
  let lock: ProcessLock | undefined;
  return {
    trust,
    durable,
    prepare: async (): Promise<void> => {
      if (lock !== undefined) return;
      durable.ensureDirectory('fleet.state', state, 0o700);
      durable.ensureDirectory('fleet.repository', directory, 0o700);
      const path = join(directory, 'lock');
      lock = await takeLock({
        path,
        holder: 'fleet serve',
        waitMs: 0,
        clock,
        durable,
        code: 'LOCK_HELD',
        signal,
      });
    },
    close: (): void => lock?.release(),
  };
}

function computeDigest(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

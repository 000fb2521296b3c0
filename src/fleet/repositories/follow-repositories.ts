// Reads repositories as a client of any host would, each by itself and again and again, and puts down what should be in use. Owns the
// schedule and the directories of trusted metadata. Whatever fails is said and tried again: it never ends the server.
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
import type { Haste } from './haste.js';
import { readOffer } from './read-offer.js';
import { readView, saveView } from './stored-views.js';
import { emptyView, nextView, type Reading } from './view-rules.js';

export interface FollowedRepository {
  readonly url: string;
  /** URLs of the same repository at other places: asked where the first one does not answer as it should. */
  readonly mirrors?: readonly string[];
  /** PEM of the authorities to trust in place of the system's, for all of its places. */
  readonly ca?: string;
  /** Absolute path of the root that trust begins with. */
  readonly rootFile: string;
}

export interface OpenedRepository extends Pick<FollowedRepository, 'url' | 'rootFile'> {
  readonly source: RepositorySource;
  readonly others: readonly RepositorySource[];
}

export interface FollowOptions {
  /** Where trusted metadata lies: a directory that is made when it is missing, in one that is there. */
  readonly state: string;
  readonly everyMs: number;
  /** Left out: nobody asks for a reading before its turn. */
  readonly haste?: Haste;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** However many wait: a repository is somebody's server. */
const soonestMs = 5_000;

/** Asks nobody yet. @throws WritError CONFIG_INVALID for a URL that is none */
export function openRepositories(
  repositories: readonly FollowedRepository[],
  clock: Clock,
): readonly OpenedRepository[] {
  return repositories.map(({ url, rootFile, mirrors = [], ca }) => {
    const options = { clock, version: writVersion, ...given({ ca }) };
    const others = mirrors.map((mirror) => openRepositorySource(mirror, options));
    return { url, rootFile, source: openRepositorySource(url, options), others };
  });
}

/** Runs until the signal. @throws WritError PATH_UNSAFE before anything is read */
export function followRepositories(
  store: Pick<FleetStore, 'db'>,
  repositories: readonly OpenedRepository[],
  options: FollowOptions,
): Promise<unknown> {
  const { signal, haste } = options;
  // A reader that sleeps listens to this one word.
  signal.addEventListener('abort', () => haste?.ask(), { once: true });
  const readers = repositories.map((one) => openReader(store, one, options));
  return Promise.all(readers.map((reader) => follow(reader, options)));
}

export interface RepositoryReader {
  /** One reading, from the first request to the row. */
  read(): Promise<void>;
  close(): Promise<void>;
}

async function follow(
  reader: RepositoryReader,
  { everyMs, haste, clock, log, signal }: FollowOptions,
): Promise<void> {
  const gapMs = Math.min(everyMs, soonestMs);
  while (!signal.aborted) {
    // Who asks while it reads wants the one that follows.
    const asked = haste?.next() ?? signal;
    await reader.read().catch((error: unknown) => {
      if (!signal.aborted) log.error({ err: error }, 'the metadata of a repository was not stored');
    });
    await clock.sleep(gapMs, signal);
    if (everyMs > gapMs) await clock.sleep(everyMs - gapMs, asked);
  }
  await reader.close();
}

export function openReader(
  { db }: Pick<FleetStore, 'db'>,
  { source, others, rootFile }: Pick<OpenedRepository, 'source' | 'others' | 'rootFile'>,
  options: Omit<FollowOptions, 'everyMs' | 'haste'>,
): RepositoryReader {
  const { clock, log, signal } = options;
  const id = digestOf(Buffer.from(source.location)).slice(0, 16);
  const roots = new Set<string>();
  const place = openPlace(join(options.state, id), options);
  const files = openTrustStore({
    directory: place.trust,
    bootstrapRoot: rootFile,
    fs: place.durable,
  });
  const store: typeof files = {
    ...files,
    // Each root of a chain comes by here, in order: hosts may still be on one of them.
    saveRoot: (version, bytes) => {
      files.saveRoot(version, bytes);
      roots.add(digestOf(bytes));
    },
  };
  const client = openRepositoryClient({ source, mirrors: others, store, clock });
  const read = async (): Promise<void> => {
    const atMs = clock.nowMs();
    const before = (await readView(db, id)) ?? emptyView(source.location);
    const reading = await readOnce(client, { atMs, known: before.entries, prepare: place.prepare, signal });
    // Cut off by the end of the server: it says nothing of the repository.
    if (signal.aborted) return;
    const { failure, ...seen } = reading;
    // Another server of this state directory reads it.
    if (failure?.code === 'LOCK_HELD') return;
    if (failure !== undefined && failure.code !== before.failing?.code)
      log.error({ url: source.location, code: failure.code, ...failure.facts }, failure.message);
    if (failure === undefined && before.failing !== undefined)
      log.info({ url: source.location }, 'the repository can be read again');
    await saveView(db, id, nextView(before, { ...seen, roots: [...roots] }));
  };
  return {
    read,
    close: async () => {
      await client.close();
      place.close();
    },
  };
}

interface ReadOptions {
  readonly atMs: number;
  readonly known: Parameters<typeof readOffer>[1];
  prepare(): Promise<void>;
  readonly signal: AbortSignal;
}

async function readOnce(
  client: RepositoryClient,
  { atMs, known, prepare, signal }: ReadOptions,
): Promise<
  Omit<Reading, 'roots'> & { readonly failure?: { code: ErrorCode; message: string; facts: object } }
> {
  try {
    await prepare();
    await client.refresh({ signal });
    const offer = await readOffer(client, known, signal);
    const { trouble } = offer;
    const failed = trouble === undefined ? {} : { code: trouble.code, failure: trouble };
    return { atMs, roles: rolesOf(client), offer, ...failed };
  } catch (error) {
    const failure = toWritError(error);
    return { atMs, roles: knownRoles(client), code: failure.code, failure };
  }
}

function rolesOf(client: RepositoryClient): SignedRole[] {
  const { roles = {}, delegated = {} } = client.status() ?? {};
  return Object.entries({ ...delegated, ...roles }).map(([role, status]) => ({ role, ...status }));
}

/** What is trusted where a refresh failed; a store that cannot be read has none. */
function knownRoles(client: RepositoryClient): SignedRole[] {
  try {
    return rolesOf(client);
  } catch {
    return [];
  }
}

/** The directory of one repository, and the lock that makes it this process's. */
function openPlace(
  directory: string,
  { state, clock, signal }: Pick<FollowOptions, 'state' | 'clock' | 'signal'>,
) {
  const durable = createDurableFs();
  const trust = join(directory, 'trust');
  // At the start, because a server that cannot keep metadata safely has to end with this code.
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

function digestOf(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

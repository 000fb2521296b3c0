// The TUF client for other modules: refresh, status, search and download. Keeps the trusted set between refreshes and stores its
// changes. refresh.ts has the order of requests, trusted-set.ts the rules. One refresh at a time; the caller holds the lock of the
// state directory.
import { isWritError, WritError } from '../core/errors.js';
import {
  defaultMetadataLimits,
  defaultTransportLimits,
  type MetadataLimits,
  type TransportLimits,
} from '../core/limits.js';
import { targetPath } from '../core/names.js';
import type { ReleaseProof, StillVerdict } from '../core/tuf/still-verifies.js';
import { recallFiles, signedAtMsOf, type TrustedSet } from '../core/tuf/trusted-set.js';
import type { Clock } from '../platform/time/clock.js';
import { downloadFromMirrors, type Receive } from './download.js';
import {
  fetchDelegated,
  findTarget,
  knownTarget,
  type LoadRole,
  listTargets,
  recallDelegated,
  type TargetList,
} from './find-target.js';
import { createRequester } from './metadata-requests.js';
import { canOtherMirrorHelp, type MirrorFailure } from './mirrors/mirror-failures.js';
import { type MirrorStatus, type Mirrors, openMirrors } from './mirrors/mirrors.js';
import { type KnownEtag, refreshMetadata } from './refresh.js';
import { rememberVerdicts } from './release-verdicts.js';
import { type FoundFile, readSignedTarget, type SignedTarget } from './signed-target.js';
import type { RepositorySource } from './sources/source.js';
import type { TrustStore } from './store/trust-store.js';
import {
  describeRefresh,
  describeTrust,
  type RefreshResult,
  type TrustStatus,
  withClock,
} from './trust-report.js';

export interface RefreshOptions {
  /** `no`: request the timestamp without its ETag, and also from mirrors that sent a Retry-After. `yes` by default. */
  readonly conditional?: 'yes' | 'no';
  readonly signal?: AbortSignal;
}

export interface RepositoryClient {
  /** The first mirror. */
  readonly source: RepositorySource;
  /**
   * Refreshes the metadata (specification 5.1 to 5.6) with one fixed time. Files that were accepted before a failure stay stored, so
   * that the next mirror or refresh continues after them.
   * @throws WritError each code of trust and transport, ROOT_MISSING, ROOT_NOT_LINKED, and DISK_*
   */
  refresh(options?: RefreshOptions): Promise<RefreshResult>;
  /** The trusted metadata, without network and without a write; undefined before the first refresh. */
  status(): TrustStatus | undefined;
  /**
   * Finds a target of any publisher, in the trusted targets and then in the delegated roles. A delegated role is fetched when it is
   * first needed, and when the snapshot lists another version. It must not have expired at any call. Its failure affects only
   * searches that need it.
   * @returns undefined if no role lists it, or before the first refresh
   * @throws WritError DELEGATION_LIMIT, each code of trust (with the role) and of transport
   */
  find(path: string, options?: TargetOptions): Promise<FoundFile | undefined>;
  /**
   * Lists all targets of the repository; fetches all delegated roles.
   * @returns undefined before the first refresh
   * @throws WritError as find
   */
  list(options?: TargetOptions): Promise<TargetList | undefined>;
  /**
   * The head of a channel, found as by `find`.
   * @throws WritError TARGET_MALFORMED, and as find
   */
  target(bundle: string, channel: string, options?: TargetOptions): Promise<SignedTarget | undefined>;
  /**
   * As target, from the stored files and regardless of expiry, without network and without a write.
   * @throws WritError TARGET_MALFORMED, DELEGATION_LIMIT, METADATA_MIX
   */
  knownTarget(bundle: string, channel: string): SignedTarget | undefined;
  /**
   * Whether current keys sign a retained release; expiry is ignored.
   * @returns undefined before the first refresh
   */
  stillVerifies(proof: ReleaseProof): StillVerdict | undefined;
  /**
   * Yields exactly `target.length` bytes from one mirror; the caller verifies the digest.
   * @throws WritError as RepositorySource.stream
   */
  streamTarget(target: FoundFile): AsyncIterable<Buffer>;
  /**
   * Downloads a target with `receive` from one mirror after the other, until `receive` accepts it.
   * @returns the failures of the mirrors before
   * @throws WritError of `receive`
   */
  download(target: SignedTarget, receive: Receive, signal?: AbortSignal): Promise<readonly MirrorFailure[]>;
  /** The state of each mirror, in the order of the configuration. */
  mirrors(): readonly MirrorStatus[];
  close(): Promise<void>;
}

export interface TargetOptions {
  readonly signal?: AbortSignal;
  /** Called for each mirror that failed before another one sent a delegated role. */
  readonly onMirrorFailed?: (failure: MirrorFailure) => void;
}

export interface RepositoryClientOptions {
  readonly source: RepositorySource;
  /** Further mirrors of the repository, tried in this order after the first one. */
  readonly mirrors?: readonly RepositorySource[];
  readonly store: TrustStore;
  readonly clock: Clock;
  readonly limits?: MetadataLimits;
  readonly transport?: TransportLimits;
}

/** Opens a client. It reads, requests and writes nothing before its first use. */
export function openRepositoryClient(options: RepositoryClientOptions): RepositoryClient {
  const { source, store, clock } = options;
  const { limits = defaultMetadataLimits, transport = defaultTransportLimits } = options;
  const mirrors = openMirrors([source, ...(options.mirrors ?? [])], clock);
  const knownEtags = new Map<RepositorySource, KnownEtag | undefined>();
  const times = { timeoutMs: transport.refreshTimeoutMs, patienceMs: transport.metadataTimeoutMs };
  const view = openView(mirrors, source);
  const { load, accept, isNew } = openTrusted(store);
  const verdicts = rememberVerdicts(store.loadDelegated);
  /** @returns undefined while there are no targets to search */
  const loader = ({ signal, onMirrorFailed }: TargetOptions): LoadRole | undefined => {
    if (isNew() || load().targets === undefined) return undefined;
    // One update uses one fixed time (5.1), also for its delegated roles.
    const nowMs = view.atMs ?? clock.nowMs();
    const context = { limits, nowMs, stored: store.loadDelegated, current: load, accept };
    const leftMs = startSearchDeadline(clock, transport.refreshTimeoutMs);
    return async (wanted) => {
      // Stored files are verified before a mirror is used, because a mirror does not cause their errors.
      const kept = recallDelegated(context, wanted);
      if (kept !== undefined) return kept;
      const timeoutMs = leftMs(wanted.role.name);
      const asked = mirrors.attempt(
        (from, until) => fetchDelegated(context, wanted, createRequester(from, until)),
        { ...times, timeoutMs, signal },
      );
      const { value, failures } = await asked.catch(view.leave);
      for (const failure of failures) onMirrorFailed?.(failure);
      return value;
    };
  };
  const find: RepositoryClient['find'] = async (path, targetOptions = {}) => {
    const loadRole = loader(targetOptions);
    return loadRole && findTarget(load(), path, loadRole);
  };

  return {
    source,
    refresh: async ({ conditional = 'yes', signal } = {}) => {
      const before = load();
      // Stores the bootstrap root in the history at the first use, and restores a lost root.json after a crash.
      store.saveRoot(before.root.signed.version, before.root.bytes);
      const refreshFrom = async (from: RepositorySource, until: AbortSignal) => {
        const nowMs = clock.nowMs();
        view.atMs = nowMs;
        const etag = conditional === 'yes' ? knownEtags.get(from) : undefined;
        const context = { source: from, store, limits, nowMs, accept, etag, signal: until };
        const refreshed = await withClockAtFailure(from, () => refreshMetadata(load(), context));
        knownEtags.set(from, refreshed.etag);
        view.from = from;
        return { nowMs, after: refreshed.set, requests: refreshed.requests };
      };
      const ask = conditional === 'yes' ? 'due' : 'all';
      const { value, ...how } = await mirrors.attempt(refreshFrom, { ...times, ask, signal });
      store.saveFloors(value.after);
      return { ...describeRefresh(before, value), ...how };
    },
    status: () => (isNew() ? undefined : describeTrust(load())),
    find,
    list: async (targetOptions = {}) => {
      const loadRole = loader(targetOptions);
      return loadRole && listTargets(load, loadRole, clock);
    },
    target: async (bundle, channel, targetOptions) => {
      const found = await find(targetPath(bundle, channel), targetOptions);
      return found && readSignedTarget(found, { bundle, channel });
    },
    knownTarget: (bundle, channel) =>
      isNew() ? undefined : knownTarget(load(), { bundle, channel }, store.loadDelegated),
    stillVerifies: (proof) => (isNew() ? undefined : verdicts(load(), proof)),
    streamTarget: ({ archivePath, length }) => mirrors.preferred().stream(archivePath, { length }),
    download: (target, receive, signal) =>
      downloadFromMirrors({ mirrors, target, transport, signal }, receive).catch(view.leave),
    mirrors: () => mirrors.status(),
    close: () => mirrors.close(),
  };
}

/** @throws the exceptions of `refresh`, with the clock of this host if it is the cause */
async function withClockAtFailure<T>(from: RepositorySource, refresh: () => Promise<T>): Promise<T> {
  try {
    return await refresh();
  } catch (error) {
    throw withClock(error, from.clockAheadMs?.());
  }
}

/** The trusted set: read at its first use, stored at each change. */
function openTrusted(store: TrustStore) {
  let trusted: TrustedSet | undefined;
  const load = (): TrustedSet => {
    trusted ??= recallFiles(store.loadRoot(), store.loadFiles());
    return trusted;
  };
  const accept = (next: TrustedSet): void => {
    persistChanges(store, load(), next);
    trusted = next;
  };
  return { load, accept, isNew: (): boolean => trusted === undefined && store.isEmpty() };
}

/**
 * One deadline for all roles of a search, because 32 slow ones could take half an hour.
 * @returns the remaining milliseconds before a role is requested; throws DOWNLOAD_TIMEOUT if none are left
 */
function startSearchDeadline(clock: Clock, timeoutMs: number): (role: string) => number {
  const endMs = clock.monotonicMs() + timeoutMs;
  return (role) => {
    const leftMs = endMs - clock.monotonicMs();
    if (leftMs > 0) return leftMs;
    const text = `${role}: not asked, as the delegated roles before it have taken ${timeoutMs} ms`;
    throw new WritError('DOWNLOAD_TIMEOUT', text, { facts: { role, timeoutMs } });
  };
}

interface View {
  /** The mirror with the metadata in use. */
  from: RepositorySource;
  /** Begin of the last refresh; undefined before the first one of this process. */
  atMs: number | undefined;
  /** Called with the error if no mirror has a file that this metadata lists; rethrows the error. */
  leave(error: unknown): never;
}

function openView(mirrors: Mirrors, first: RepositorySource): View {
  const view: View = {
    from: first,
    atMs: undefined,
    leave: (error) => {
      if (isWritError(error) && canOtherMirrorHelp(error)) mirrors.leave(view.from);
      throw error;
    },
  };
  return view;
}

/**
 * The clock floor that is stored in addition to the timestamp, because a server signs an older time after its clock was set back;
 * undefined if the timestamp has the greatest time.
 */
function separateClockFloor(set: TrustedSet): number | undefined {
  const { clockFloorMs = 0, timestamp } = set;
  return clockFloorMs > (signedAtMsOf(timestamp) ?? 0) ? clockFloorMs : undefined;
}

/** Stores the files that changed. All files of a set are verified. */
function persistChanges(store: TrustStore, before: TrustedSet, next: TrustedSet): void {
  if (next.root !== before.root) store.saveRoot(next.root.signed.version, next.root.bytes);
  // Before the timestamp: after a crash in between, the stored floor is still correct.
  if (next.timestamp !== before.timestamp) store.saveClockFloor(separateClockFloor(next));
  for (const role of ['timestamp', 'snapshot', 'targets'] as const) {
    const file = next[role];
    if (file !== undefined && file !== before[role]) store.saveFile(role, file.bytes);
  }
  if (next.delegated === before.delegated) return;
  for (const [name, file] of next.delegated ?? []) {
    if (file !== before.delegated?.get(name)) store.saveDelegated(name, file.bytes);
  }
}

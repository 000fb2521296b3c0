// The TUF client as the rest of Writ sees it: refresh, look, find, stream. Owns what is kept between refreshes
// and when it is persisted; the order of requests is refresh's, the rules are trusted-set's. One refresh at a
// time; the caller holds the lock of the state directory.
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
  /**
   * `no` asks for the timestamp itself even if its ETag is known, and those mirrors too that asked for quiet;
   * `yes` by default.
   */
  readonly conditional?: 'yes' | 'no';
  readonly signal?: AbortSignal;
}

export interface RepositoryClient {
  /** The first mirror. */
  readonly source: RepositorySource;
  /**
   * Brings trust up to date (specification 5.1 to 5.6), with one fixed time. What was accepted before a failure
   * stays accepted and stored, so that the next mirror, or the next refresh, goes on from there.
   * @throws WritError every code of the trust and transport sections, ROOT_MISSING, ROOT_NOT_LINKED, and DISK_*
   */
  refresh(options?: RefreshOptions): Promise<RefreshResult>;
  /** What is trusted now, without the network and without a write; undefined before the first refresh. */
  status(): TrustStatus | undefined;
  /**
   * A target of any publisher: looked for in the trusted targets, then in the roles they delegate to. A delegated
   * role is fetched when it is first needed and whenever the snapshot names another one, and must be fresh at
   * every call; its trouble is that of the paths on its way alone.
   * @returns undefined if no role lists it, or nothing is trusted yet
   * @throws WritError DELEGATION_LIMIT, every code of trust (naming the role) and of transport
   */
  find(path: string, options?: TargetOptions): Promise<FoundFile | undefined>;
  /**
   * Everything that the repository offers; it fetches every delegated role.
   * @returns undefined if nothing is trusted yet
   * @throws WritError as find
   */
  list(options?: TargetOptions): Promise<TargetList | undefined>;
  /** The head of a channel, found the same way. @throws WritError TARGET_MALFORMED, and as find */
  target(bundle: string, channel: string, options?: TargetOptions): Promise<SignedTarget | undefined>;
  /**
   * As target, from what is stored, whether or not it has expired: without the network and without a write.
   * @throws WritError TARGET_MALFORMED, DELEGATION_LIMIT, METADATA_MIX
   */
  knownTarget(bundle: string, channel: string): SignedTarget | undefined;
  /**
   * Whether a kept release is vouched for by the keys of today; expiry is not asked.
   * @returns undefined before the first refresh: then nobody can say
   */
  stillVerifies(proof: ReleaseProof): StillVerdict | undefined;
  /**
   * Yields exactly `target.length` bytes of one mirror; the caller digests.
   * @throws WritError as RepositorySource.stream
   */
  streamTarget(target: FoundFile): AsyncIterable<Buffer>;
  /**
   * Lets `receive` take a target from one mirror after the other, until it is content with what it got.
   * @returns the mirrors that it was not content with
   * @throws WritError of `receive`
   */
  download(target: SignedTarget, receive: Receive, signal?: AbortSignal): Promise<readonly MirrorFailure[]>;
  /** What became of each mirror, in the order of the configuration. */
  mirrors(): readonly MirrorStatus[];
  close(): Promise<void>;
}

export interface TargetOptions {
  readonly signal?: AbortSignal;
  /** Called for each mirror that failed before another one brought a delegated role. */
  readonly onMirrorFailed?: (failure: MirrorFailure) => void;
}

export interface RepositoryClientOptions {
  readonly source: RepositorySource;
  /** Further places of the same repository, asked in this order when those before them fail. */
  readonly mirrors?: readonly RepositorySource[];
  readonly store: TrustStore;
  readonly clock: Clock;
  readonly limits?: MetadataLimits;
  readonly transport?: TransportLimits;
}

/** Opens a client; nothing is read, asked or written before its first use. */
export function openRepositoryClient(options: RepositoryClientOptions): RepositoryClient {
  const { source, store, clock } = options;
  const { limits = defaultMetadataLimits, transport = defaultTransportLimits } = options;
  const mirrors = openMirrors([source, ...(options.mirrors ?? [])], clock);
  const knownEtags = new Map<RepositorySource, KnownEtag | undefined>();
  const times = { timeoutMs: transport.refreshTimeoutMs, patienceMs: transport.metadataTimeoutMs };
  const view = openView(mirrors, source);
  const { load, accept, isNew } = openTrusted(store);
  const verdicts = rememberVerdicts(store.loadDelegated);
  /** @returns undefined as long as there are no targets to begin a search with */
  const loader = ({ signal, onMirrorFailed }: TargetOptions): LoadRole | undefined => {
    if (isNew() || load().targets === undefined) return undefined;
    // One update is judged at one time (5.1), its delegated roles too.
    const nowMs = view.atMs ?? clock.nowMs();
    const context = { limits, nowMs, stored: store.loadDelegated, current: load, accept };
    const leftMs = startSearchDeadline(clock, transport.refreshTimeoutMs);
    return async (wanted) => {
      // Kept files are judged before a mirror is asked: no mirror is to blame for what they are.
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
      // At first use this puts the bootstrap root into the history; after a crash it heals root.json.
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

/** @throws what `refresh` throws, with the clock of this host in it where that is the cause */
async function withClockAtFailure<T>(from: RepositorySource, refresh: () => Promise<T>): Promise<T> {
  try {
    return await refresh();
  } catch (error) {
    throw withClock(error, from.clockAheadMs?.());
  }
}

/** What is trusted: read at the first question, and stored with every change. */
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
 * One time for all roles of a search: through 32 of them, each as slow as it may be, it would take half an hour.
 * @returns what is left before a role is asked for, or throws DOWNLOAD_TIMEOUT
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
  /** Whose metadata is in use. */
  from: RepositorySource;
  /** When the last refresh began; undefined before the first one of this process. */
  atMs: number | undefined;
  /** Called with the error when no mirror has what it names; throws the error. */
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

/** A server whose clock was set back signs an older time: the greatest one seen is kept beside its timestamp. */
function separateClockFloor(set: TrustedSet): number | undefined {
  const { clockFloorMs = 0, timestamp } = set;
  return clockFloorMs > (signedAtMsOf(timestamp) ?? 0) ? clockFloorMs : undefined;
}

/** Everything in a set has been verified; what did not change is not even looked at. */
function persistChanges(store: TrustStore, before: TrustedSet, next: TrustedSet): void {
  if (next.root !== before.root) store.saveRoot(next.root.signed.version, next.root.bytes);
  // Before the timestamp: a crash in between leaves a floor that is true all the same.
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

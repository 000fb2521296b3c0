// The TUF client as the rest of Writ sees it: refresh, look, find, stream. Owns what is kept between refreshes
// and when it is persisted; the order of requests is refresh's, the rules are trusted-set's. One refresh at a
// time; the caller holds the lock of the state directory.
import { defaultMetadataLimits, type MetadataLimits } from '../core/limits.js';
import { recallFiles, type TrustedSet } from '../core/trusted-set.js';
import type { Clock } from '../platform/clock.js';
import { type KnownEtag, refreshTrust } from './refresh.js';
import type { RepositorySource } from './repository-source.js';
import { findTarget, type SignedTarget } from './signed-target.js';
import { describeRefresh, describeTrust, type RefreshResult, type TrustStatus } from './trust-report.js';
import type { TrustStore } from './trust-store.js';

export interface RefreshOptions {
  /** `no` asks for the timestamp itself even if its ETag is known; `yes` by default. */
  readonly conditional?: 'yes' | 'no';
  readonly signal?: AbortSignal;
}

export interface RepositoryClient {
  readonly source: RepositorySource;
  /**
   * Brings trust up to date (specification 5.1 to 5.6), with one fixed time. What was accepted before a failure
   * stays accepted and stored, so that the next refresh goes on from there.
   * @throws WritError every code of the trust and transport sections, ROOT_MISSING, ROOT_NOT_LINKED, and DISK_*
   */
  refresh(options?: RefreshOptions): Promise<RefreshResult>;
  /** What is trusted now, without the network and without a write; undefined before the first refresh. */
  status(): TrustStatus | undefined;
  /** The head of a channel in the trusted targets. @throws WritError TARGET_MALFORMED */
  target(bundle: string, channel: string): SignedTarget | undefined;
  /** Yields exactly `target.length - offset` bytes; the caller digests. @throws WritError as RepositorySource.stream */
  streamTarget(target: SignedTarget, options?: StreamTargetOptions): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

export interface StreamTargetOptions {
  readonly offset?: number;
  readonly signal?: AbortSignal;
}

export interface RepositoryClientOptions {
  readonly source: RepositorySource;
  readonly store: TrustStore;
  readonly clock: Clock;
  readonly limits?: MetadataLimits;
}

/** Opens a client; nothing is read, asked or written before its first use. */
export function openRepositoryClient(options: RepositoryClientOptions): RepositoryClient {
  const { source, store, clock, limits = defaultMetadataLimits } = options;
  let trusted: TrustedSet | undefined;
  let knownEtag: KnownEtag | undefined;
  const load = (): TrustedSet => {
    trusted ??= recallFiles(store.loadRoot(), store.loadFiles());
    return trusted;
  };

  return {
    source,
    refresh: async ({ conditional = 'yes', signal } = {}) => {
      const before = load();
      const nowMs = clock.nowMs();
      // At first use this puts the bootstrap root into the history; after a crash it heals root.json.
      store.saveRoot(before.root.signed.version, before.root.bytes);
      const accept = (next: TrustedSet): void => {
        persistChanges(store, trusted ?? before, next);
        trusted = next;
      };
      const etag = conditional === 'yes' ? knownEtag : undefined;
      const refreshed = await refreshTrust(before, { source, store, limits, nowMs, accept, etag, signal });
      knownEtag = refreshed.etag;
      return describeRefresh({ before, after: refreshed.set, nowMs, requests: refreshed.requests });
    },
    status: () => (trusted === undefined && store.isEmpty() ? undefined : describeTrust(load())),
    target: (bundle, channel) =>
      trusted === undefined && store.isEmpty() ? undefined : findTarget(load(), bundle, channel),
    streamTarget: (target, streamOptions = {}) =>
      source.stream(target.archivePath, { length: target.length, ...streamOptions }),
    close: () => source.close(),
  };
}

/** Everything in a set has been verified; what did not change is not even looked at. */
function persistChanges(store: TrustStore, before: TrustedSet, next: TrustedSet): void {
  if (next.root !== before.root) store.saveRoot(next.root.signed.version, next.root.bytes);
  for (const role of ['timestamp', 'snapshot', 'targets'] as const) {
    const file = next[role];
    if (file !== undefined && file !== before[role]) store.saveFile(role, file.bytes);
  }
}

// The client of tuf-js with its files and its network in memory: fast enough for thousands of repositories. All of its
// judgement is its own; only where bytes come from, and what time it is, is ours.
import { type TargetFile, Updater } from 'tuf-js';
import { defaultConfig } from 'tuf-js/dist/config.js';
import { DownloadHTTPError, DownloadLengthMismatchError } from 'tuf-js/dist/error.js';
import { TrustedMetadataStore } from 'tuf-js/dist/store.js';

export interface InMemoryTufJs {
  refresh(): Promise<void>;
  /** @returns undefined if nobody lists the path */
  find(path: string): Promise<TargetFile | undefined>;
}

export interface InMemoryOptions {
  /** Stored metadata by role, with the root at least; what it stores appears here. */
  readonly stored: Map<string, Buffer>;
  /** What is served, by path below the top. */
  readonly served: ReadonlyMap<string, Buffer>;
  readonly nowMs: number;
}

/** @throws what tuf-js says about a stored root that is none */
export function tufJsInMemory({ stored, served, nowMs }: InMemoryOptions): InMemoryTufJs {
  const trustedSet = new TrustedMetadataStore(stored.get('root') ?? Buffer.alloc(0));
  Object.assign(trustedSet, { referenceTime: new Date(nowMs) });
  const fetcher = {
    downloadBytes: async (url: string, maxLength: number): Promise<Buffer> => {
      const bytes = served.get(url.replace('http://memory/', ''));
      if (bytes === undefined) throw new DownloadHTTPError('not there', 404);
      if (bytes.length > maxLength) throw new DownloadLengthMismatchError('too long');
      return bytes;
    },
  };
  // The constructor would read its directory: the parts that it makes are given here.
  const updater: Updater = Object.assign(Object.create(Updater.prototype), {
    metadataBaseUrl: 'http://memory/metadata/',
    forceCache: false,
    config: defaultConfig,
    trustedSet,
    fetcher,
    loadLocalMetadata: (name: string): Buffer => {
      const bytes = stored.get(encodeURIComponent(name));
      if (bytes === undefined) throw new Error('not stored');
      return bytes;
    },
    persistMetadata: (name: string, bytes: Buffer): void => {
      stored.set(encodeURIComponent(name), bytes);
    },
  });
  return { refresh: () => updater.refresh(), find: (path) => updater.getTargetInfo(path) };
}

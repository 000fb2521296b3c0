// The client of tuf-js with files and network in memory, for thousands of repositories. Only the source of bytes and the time
// are replaced.
import { type TargetFile, Updater } from 'tuf-js';
import { defaultConfig } from 'tuf-js/dist/config.js';
import { DownloadHTTPError, DownloadLengthMismatchError } from 'tuf-js/dist/error.js';
import { TrustedMetadataStore } from 'tuf-js/dist/store.js';

export interface InMemoryTufJs {
  refresh(): Promise<void>;
  /** @returns the bytes of a target; undefined if no role lists it */
  find(path: string): Promise<TargetFile | undefined>;
}

export interface InMemoryOptions {
  /** Stored metadata by role with at least the root; files that it stores are added. */
  readonly stored: Map<string, Buffer>;
  /** Served files by path below the top. */
  readonly served: ReadonlyMap<string, Buffer>;
  readonly nowMs: number;
}

/** @throws the error of tuf-js for a malformed stored root */
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
  // The constructor would read its directory, so that its parts are set here.
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

// The interface of a source of repository files. Types only; repository-source.ts chooses the implementation.

export type FetchVerdict =
  | { readonly kind: 'found'; readonly bytes: Buffer; readonly etag?: string }
  | { readonly kind: 'not-modified' }
  /** `redirectedTo`: URL of the missing file after a redirect. */
  | { readonly kind: 'absent'; readonly redirectedTo?: string };

export interface FetchOptions {
  readonly maxBytes: number;
  /** ETag of the caller's copy: the source may respond `not-modified`. */
  readonly etag?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface StreamOptions {
  /** Signed length of the whole file in bytes, for any offset. */
  readonly length: number;
  /** Number of bytes at the start that the caller has already. */
  readonly offset?: number;
  /** ETag of the version of these bytes, as this source sent it. */
  readonly etag?: string | undefined;
  /** Called before the first byte. */
  readonly onBegin?: (begun: Begun) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Where the bytes of a transfer begin: at the requested offset, or at 0 if the source cannot resume there. */
export interface Begun {
  readonly offset: number;
  /** Strong ETag of the version that is sent; undefined without one. */
  readonly etag?: string | undefined;
}

/** Paths are relative and separated by `/`, each segment percent-encoded (see encodePath). */
export interface RepositorySource {
  readonly location: string;
  /**
   * @throws WritError DOWNLOAD_TOO_LARGE, DOWNLOAD_TRUNCATED, DOWNLOAD_TIMEOUT, SERVER_UNREACHABLE, SERVER_BUSY, SERVER_ERROR,
   *   REDIRECT_REFUSED, INTERRUPTED
   */
  fetch(path: string, options: FetchOptions): Promise<FetchVerdict>;
  /**
   * Yields exactly the bytes from its begin to `length`, or throws; the caller verifies the digest.
   * @throws WritError as fetch, and TARGET_MISSING
   */
  stream(path: string, options: StreamOptions): AsyncIterable<Buffer>;
  /**
   * Clock of this host minus clock of the server, by its last response; undefined if it sent no time. Not signed, so that it is only
   * a hint.
   */
  clockAheadMs?(): number | undefined;
  close(): Promise<void>;
}

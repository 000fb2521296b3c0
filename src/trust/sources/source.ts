// Where files of a repository come from, as whoever reads them sees it. Types alone; repository-source.ts chooses one.

export type FetchVerdict =
  | { readonly kind: 'found'; readonly bytes: Buffer; readonly etag?: string }
  | { readonly kind: 'not-modified' }
  /** `redirectedTo`: where it is not, when the source sent us elsewhere. */
  | { readonly kind: 'absent'; readonly redirectedTo?: string };

export interface FetchOptions {
  readonly maxBytes: number;
  /** Of the copy at hand: the source may answer `not-modified`. */
  readonly etag?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface StreamOptions {
  /** Signed length of the whole file in bytes, whatever the offset. */
  readonly length: number;
  /** Bytes at the start that the caller has already. */
  readonly offset?: number;
  /** Of the version that they are of, as this source named it. */
  readonly etag?: string | undefined;
  /** Told before the first byte. */
  readonly onBegin?: (begun: Begun) => void;
  readonly signal?: AbortSignal | undefined;
}

/** Where the bytes of a transfer begin: where they were asked for, or at the start where the source cannot go on there. */
export interface Begun {
  readonly offset: number;
  /** Of the version that is sent; only one that names exactly one content. */
  readonly etag?: string | undefined;
}

/** Paths are relative, `/`-separated, each segment percent-encoded (see encodePath). */
export interface RepositorySource {
  readonly location: string;
  /**
   * @throws WritError DOWNLOAD_TOO_LARGE, DOWNLOAD_TRUNCATED, DOWNLOAD_TIMEOUT, SERVER_UNREACHABLE, SERVER_BUSY,
   *   SERVER_ERROR, REDIRECT_REFUSED, INTERRUPTED
   */
  fetch(path: string, options: FetchOptions): Promise<FetchVerdict>;
  /**
   * Yields exactly the bytes from where it has begun to `length`, or throws; the caller digests them.
   * @throws WritError as fetch, and TARGET_MISSING
   */
  stream(path: string, options: StreamOptions): AsyncIterable<Buffer>;
  /** This host's clock minus the server's, by its last answer; undefined where it sent no time. A hint: nothing signs it. */
  clockAheadMs?(): number | undefined;
  close(): Promise<void>;
}

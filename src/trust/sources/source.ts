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
  readonly signal?: AbortSignal | undefined;
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
   * Yields exactly `length - offset` bytes, or throws; the caller digests them.
   * @throws WritError as fetch, and TARGET_MISSING
   */
  stream(path: string, options: StreamOptions): AsyncIterable<Buffer>;
  close(): Promise<void>;
}

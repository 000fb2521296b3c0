// A repository on any web server: whole metadata files, conditional where an ETag is known, and targets as
// streams that go on where they were cut. Owns the meaning of statuses and ranges.
import { WritError } from '../../core/errors.js';
import {
  type HttpExchange,
  type HttpOptions,
  type HttpRequest,
  openHttpDoor,
} from '../../platform/net/http-client.js';
import { exactLength, readBounded, targetMissing, tooLarge, truncated } from './exact-length.js';
import type { FetchOptions, FetchVerdict, RepositorySource, StreamOptions } from './source.js';
import { decodePath } from './source-path.js';

/** @param baseUrl ends in a slash */
export function openHttpSource(baseUrl: URL, options: HttpOptions): RepositorySource {
  const door = openHttpDoor(baseUrl, options);
  const open = (request: HttpRequest): Promise<HttpExchange> => {
    decodePath(request.path);
    return door.open(request);
  };
  return {
    location: baseUrl.href,
    fetch: async (path, fetchOptions) => {
      const exchange = await open({
        path,
        totalTimeoutMs: options.limits.metadataTimeoutMs,
        ...(fetchOptions.etag === undefined ? {} : { headers: { 'if-none-match': fetchOptions.etag } }),
        ...(fetchOptions.signal === undefined ? {} : { signal: fetchOptions.signal }),
      });
      try {
        return await readFetched(exchange, fetchOptions, `${baseUrl.href}${path}`);
      } finally {
        await exchange.end();
      }
    },
    stream: (path, streamOptions) =>
      streamTarget((request) => open({ ...request, path }), `${baseUrl.href}${path}`, {
        ...streamOptions,
        totalTimeoutMs: options.limits.archiveTimeoutMs,
      }),
    close: () => door.close(),
  };
}

async function readFetched(
  exchange: HttpExchange,
  options: FetchOptions,
  url: string,
): Promise<FetchVerdict> {
  if (exchange.status === 404) return { kind: 'absent' };
  if (exchange.status === 304 && options.etag !== undefined) return { kind: 'not-modified' };
  if (exchange.status !== 200) throw unexpected(exchange, url);
  const declared = exchange.contentLength;
  if (declared !== undefined && declared > options.maxBytes) throw tooLarge(url, options.maxBytes, declared);
  const bytes = await readBounded(exchange.body(), options.maxBytes, url);
  const etag = exchange.header('etag');
  return etag === undefined || etag.length > 200 ? { kind: 'found', bytes } : { kind: 'found', bytes, etag };
}

type OpenTarget = (request: Omit<HttpRequest, 'path'>) => Promise<HttpExchange>;

async function* streamTarget(
  open: OpenTarget,
  url: string,
  options: StreamOptions & { readonly totalTimeoutMs: number },
): AsyncGenerator<Buffer> {
  const { length, offset = 0, totalTimeoutMs, signal } = options;
  // Nothing is left to fetch, and a range that begins at the end is an error to every server.
  if (offset >= length) return;
  const exchange = await open({
    totalTimeoutMs,
    ...(offset > 0 ? { headers: { range: `bytes=${offset}-` } } : {}),
    ...(signal === undefined ? {} : { signal }),
  });
  try {
    const skip = requireRange(exchange, { length, offset }, url);
    const body = skip > 0 ? skipBytes(exchange.body(), skip) : exchange.body();
    yield* exactLength(body, { expected: length - offset, what: url });
  } finally {
    await exchange.end();
  }
}

type WantedRange = Readonly<Record<'length' | 'offset', number>>;

/** @returns how many bytes of the body the caller has already: all of them if the range was ignored */
function requireRange(exchange: HttpExchange, wanted: WantedRange, url: string): number {
  const { length, offset } = wanted;
  switch (exchange.status) {
    case 404:
      throw targetMissing(url);
    case 416:
      // The file ends before the place where we want to go on: it is not the one that was signed.
      throw truncated(url, length, offset);
    case 200:
      requireDeclared(exchange, length, url);
      return offset;
    case 206:
      if (offset === 0) throw unexpected(exchange, url);
      requireDeclared(exchange, length - offset, url);
      requireContentRange(exchange, wanted, url);
      return 0;
    default:
      throw unexpected(exchange, url);
  }
}

function requireDeclared(exchange: HttpExchange, expected: number, url: string): void {
  const declared = exchange.contentLength ?? expected;
  if (declared > expected) throw tooLarge(url, expected, declared);
  if (declared < expected) throw truncated(url, expected, declared);
}

/** A range of another version, or another range, would be glued to bytes that it does not belong to. */
function requireContentRange(exchange: HttpExchange, { length, offset }: WantedRange, url: string): void {
  const actual = exchange.header('content-range') ?? 'none';
  const expected = `bytes ${offset}-${length - 1}/${length}`;
  if (actual === expected || actual === `bytes ${offset}-${length - 1}/*`) return;
  throw new WritError('SERVER_ERROR', `${url}: another range came than the one asked for`, {
    facts: { url, status: exchange.status, expected, actual: actual.slice(0, 100) },
  });
}

async function* skipBytes(chunks: AsyncIterable<Buffer>, count: number): AsyncGenerator<Buffer> {
  let left = count;
  for await (const chunk of chunks) {
    const skipped = Math.min(left, chunk.length);
    left -= skipped;
    // An empty one too: who watches for a transfer that hangs must hear of one that does not.
    yield chunk.subarray(skipped);
  }
}

function unexpected(exchange: HttpExchange, url: string): WritError {
  const { status } = exchange;
  return new WritError('SERVER_ERROR', `${url} answered with status ${status} out of turn`, {
    facts: { url, status },
  });
}

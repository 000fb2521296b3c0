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
import { leastPace } from './least-pace.js';
import type { FetchVerdict, RepositorySource } from './source.js';
import { decodePath } from './source-path.js';

/** @param baseUrl ends in a slash */
export function openHttpSource(baseUrl: URL, options: HttpOptions): RepositorySource {
  const { metadataTimeoutMs, archiveTimeoutMs } = options.limits;
  const door = openHttpDoor(baseUrl, options);
  const open = (path: string, signal: AbortSignal | undefined, how: HowToAsk): Promise<HttpExchange> => {
    decodePath(path);
    return door.open({ path, ...how, ...(signal === undefined ? {} : { signal }) });
  };
  return {
    location: baseUrl.href,
    fetch: async (path, { maxBytes, etag, signal }) => {
      const headers = etag === undefined ? {} : { 'if-none-match': etag };
      const exchange = await open(path, signal, { totalTimeoutMs: metadataTimeoutMs, headers });
      try {
        if (exchange.status === 304 && etag !== undefined) return { kind: 'not-modified' };
        return await readFetched(exchange, maxBytes, `${baseUrl.href}${path}`);
      } finally {
        await exchange.end();
      }
    },
    stream: async function* (path, { length, offset = 0, signal }) {
      // Nothing is left to fetch, and a range that begins at the end is an error to every server.
      if (offset >= length) return;
      const headers = offset > 0 ? { range: `bytes=${offset}-` } : {};
      const exchange = await open(path, signal, { totalTimeoutMs: archiveTimeoutMs, headers });
      try {
        const url = `${baseUrl.href}${path}`;
        // What is skipped counts too: a server that knows no ranges is not slow by that.
        const body = (): AsyncIterable<Buffer> => leastPace(exchange.body(), options.clock, url);
        yield* wantedBytes({ ...exchange, body }, { length, offset }, url);
      } finally {
        await exchange.end();
      }
    },
    close: () => door.close(),
  };
}

type HowToAsk = Required<Pick<HttpRequest, 'totalTimeoutMs' | 'headers'>>;

async function readFetched(exchange: HttpExchange, maxBytes: number, url: string): Promise<FetchVerdict> {
  if (exchange.status === 404)
    return exchange.url === url ? { kind: 'absent' } : { kind: 'absent', redirectedTo: exchange.url };
  if (exchange.status !== 200) throw unexpected(exchange, url);
  const declared = exchange.contentLength;
  if (declared !== undefined && declared > maxBytes) throw tooLarge(url, maxBytes, declared);
  const bytes = await readBounded(exchange.body(), maxBytes, url);
  const etag = exchange.header('etag');
  return etag === undefined || etag.length > 200 ? { kind: 'found', bytes } : { kind: 'found', bytes, etag };
}

function wantedBytes(exchange: HttpExchange, wanted: WantedRange, url: string): AsyncGenerator<Buffer> {
  const skip = requireRange(exchange, wanted, url);
  const body = skip > 0 ? skipBytes(exchange.body(), skip) : exchange.body();
  return exactLength(body, { expected: wanted.length - wanted.offset, what: url });
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

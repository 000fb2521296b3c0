// A repository on any web server: complete metadata files, with If-None-Match if an ETag is known, and targets as streams that are
// resumed after an interruption (range-rules.ts).
import { WritError } from '../../core/errors.js';
import {
  type HttpExchange,
  type HttpOptions,
  type HttpRequest,
  openHttpClient,
} from '../../platform/net/http-client.js';
import { exactLength, readBounded, tooLarge } from './exact-length.js';
import { requireMinimumThroughput } from './minimum-throughput.js';
import { judgeResponse, rangeHeaders, type WantedRange } from './range-rules.js';
import type { FetchVerdict, RepositorySource } from './source.js';
import { decodePath } from './source-path.js';

/** @param baseUrl ends with a slash */
export function openHttpSource(baseUrl: URL, options: HttpOptions): RepositorySource {
  const { metadataTimeoutMs, archiveTimeoutMs } = options.limits;
  const client = openHttpClient(baseUrl, options);
  let aheadMs: number | undefined;
  const open = async (
    path: string,
    signal: AbortSignal | undefined,
    how: RequestSettings,
  ): Promise<HttpExchange> => {
    decodePath(path);
    const exchange = await client.open({ path, ...how, ...(signal === undefined ? {} : { signal }) });
    aheadMs = exchange.dateMs === undefined ? undefined : options.clock.nowMs() - exchange.dateMs;
    return exchange;
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
    stream: async function* (path, { length, offset = 0, etag, onBegin, signal }) {
      // The file is complete, and a range that begins at the end is an error for every server.
      if (offset >= length) return;
      const url = `${baseUrl.href}${path}`;
      const transfer = async function* (wanted: WantedRange): AsyncGenerator<Buffer> {
        const how = { totalTimeoutMs: archiveTimeoutMs, headers: rangeHeaders(wanted) };
        const exchange = await open(path, signal, how);
        try {
          const begun = judgeResponse(exchange, wanted, url);
          if (begun.kind === 'begins') {
            const { offset: from, etag: version } = begun;
            onBegin?.({ offset: from, etag: version });
            const body = requireMinimumThroughput(exchange.body(), options.clock, url);
            yield* exactLength(body, { expected: length - begun.offset, what: url });
            return;
          }
        } finally {
          await exchange.end();
        }
        // A response without a range never has the verdict `anew`.
        yield* transfer({ length, offset: 0 });
      };
      yield* transfer({ length, offset, etag });
    },
    clockAheadMs: () => aheadMs,
    close: () => client.close(),
  };
}

type RequestSettings = Required<Pick<HttpRequest, 'totalTimeoutMs' | 'headers'>>;

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

function unexpected(exchange: HttpExchange, url: string): WritError {
  const { status } = exchange;
  return new WritError('SERVER_ERROR', `${url} answered with status ${status} out of turn`, {
    facts: { url, status },
  });
}

// Target for a resumed download: answers to a request for the rest of a file, over real sockets. An input is a line with the
// partial download and its version, and one answer for each connection.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { WritError } from '../../../src/core/errors.js';
import { defaultTransportLimits } from '../../../src/core/limits.js';
import { exactLength } from '../../../src/trust/sources/exact-length.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import type { Begun, StreamOptions } from '../../../src/trust/sources/source.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { rawServer } from '../../kit/net/raw-server.js';
import { acceptedOr, type Target } from '../engine/target.js';

const whole = 'abcdefghijklmnopqrstuvwxyz';
const { length } = whole;
const path = 'targets/x';
const between = '\n====\n';
const codes = [
  ...['SERVER_UNREACHABLE', 'SERVER_BUSY', 'SERVER_ERROR', 'REDIRECT_REFUSED', 'TARGET_MISSING'],
  ...['DOWNLOAD_TOO_LARGE', 'DOWNLOAD_TRUNCATED'],
];
/** Connections for the rest, for the complete file, and for redirects. */
const maxRequests = 12;

type Download = (url: string, options: StreamOptions) => AsyncIterable<Buffer>;

/** @param download replaces the source of Writ; a test passes a broken one */
export async function rangeAnswersTarget(download?: Download): Promise<Target> {
  let answers: readonly Buffer[] = [];
  const requests: string[] = [];
  const server = await rawServer((socket, request) => {
    socket.end(answers[Math.min(requests.length, answers.length - 1)] ?? Buffer.alloc(0));
    requests.push(request.toString('latin1'));
  });
  const limits = { ...defaultTransportLimits, archiveTimeoutMs: 120_000 };
  const source = openRepositorySource(server.url, { clock: fakeClock(), version: 'fuzz', limits });
  const open: Download = download ?? ((_url, options) => source.stream(path, options));
  return {
    name: 'range-answers',
    seeds: [
      input('11 "v1"', rest(11, 'ETag: "v1"')),
      input('11', rest(11)),
      input('11 W/"v1"', rest(11, 'ETag: W/"v1"')),
      input('11 "v1"', answered('200 OK', `Content-Length: ${length}\r\nETag: "v2"`, whole)),
      input('0', answered('200 OK', `Content-Length: ${length}\r\nETag: "v1"`, whole)),
      input('0', answered('200 OK', 'Transfer-Encoding: chunked', `1a\r\n${whole}\r\n0\r\n\r\n`)),
      input(
        '25 "v1"',
        answered('416 Range Not Satisfiable', `Content-Range: bytes */${length}\r\nContent-Length: 0`, ''),
        answered('200 OK', `Content-Length: ${length}`, whole),
      ),
      input('26', rest(0)),
    ],
    tokens: [
      ...[
        '206 Partial Content\r\n',
        '200 OK\r\n',
        '416 ',
        '404 ',
        '304 ',
        '302 ',
        'HTTP/1.1 100 Continue\r\n\r\n',
      ],
      ...[
        'Content-Range: bytes 11-25/26\r\n',
        'Content-Range: bytes 0-25/26\r\n',
        'Content-Range: bytes 12-25/26\r\n',
      ],
      ...[
        '/*',
        'bytes ',
        'bytes */26',
        '-25/27',
        '11-24/26',
        'Content-Length: 26\r\n',
        'Content-Length: 15\r\n',
      ],
      ...[
        'ETag: "v2"\r\n',
        'ETag: W/"v1"\r\n',
        'ETag: "v1"',
        'Content-Type: multipart/byteranges; boundary=x\r\n',
      ],
      ...['Location: /targets/y\r\n', 'Content-Encoding: gzip\r\n', '\r\n\r\n', between, whole, '11 "v1"\n'],
    ],
    check: async (bytes) => {
      const { offset, etag, sent } = readInput(bytes);
      answers = sent;
      requests.length = 0;
      const begun: Begun[] = [];
      let received = 0;
      let bytesBeforeBegin = 0;
      const run = async (): Promise<'whole'> => {
        const onBegin = (one: Begun): void => void begun.push(one);
        for await (const chunk of open(`${server.url}${path}`, { length, offset, etag, onBegin })) {
          if (begun.length === 0) bytesBeforeBegin += chunk.length;
          received += chunk.length;
        }
        return 'whole';
      };
      const ended = await run().then(
        (value) => ({ value }),
        (error: unknown) => acceptedOr<never>(codes, () => raise(error)),
      );
      if (offset >= length) return assert.deepEqual([requests.length, received], [0, 0]);
      requireAsked(requests, { offset, etag });
      assert.equal(bytesBeforeBegin, 0);
      assert.ok(begun.length <= 1, 'begun twice');
      const [from] = begun;
      if (from === undefined) return assert.ok(!('value' in ended), 'whole, and never begun');
      const due = length - from.offset;
      assert.ok(received <= due && (!('value' in ended) || received === due), `${received} of ${due} bytes`);
      assert.match(from.etag ?? '"x"', /^"[^"\s]+"$/);
      if (from.offset === 0) return;
      assert.equal(from.offset, offset);
      requireTheRest(answers[Math.min(requests.length, answers.length) - 1], { offset, etag });
    },
    close: async () => {
      await source.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

/** A client with typical faults of a first version: it trusts a status and ignores its range. */
export async function* carelessDownload(url: string, options: StreamOptions): AsyncGenerator<Buffer> {
  const { length: expected, offset = 0, onBegin } = options;
  if (offset >= expected) return;
  const refused = (): WritError => new WritError('SERVER_ERROR', 'no answer to go on with');
  const headers = offset === 0 ? {} : { range: `bytes=${offset}-` };
  const request = get(url, { headers, agent: false });
  const response = await once(request, 'response').then(
    ([one]) => one as IncomingMessage,
    () => undefined,
  );
  request.on('error', () => undefined);
  const { statusCode = 0 } = response ?? {};
  if (response === undefined || (statusCode !== 200 && statusCode !== 206)) throw refused();
  const from = statusCode === 206 ? offset : 0;
  onBegin?.({ offset: from });
  try {
    yield* exactLength(response, { expected: expected - from, what: url });
  } catch (error) {
    throw error instanceof WritError ? error : refused();
  }
}

interface Here {
  readonly offset: number;
  readonly etag: string | undefined;
}

function input(here: string, ...answers: readonly string[]): Buffer {
  return Buffer.from(`${here}\n${answers.join(between)}`, 'latin1');
}

function answered(status: string, headers: string, body: string): string {
  return `HTTP/1.1 ${status}\r\n${headers}\r\nConnection: close\r\n\r\n${body}`;
}

function rest(offset: number, more = 'Server: x'): string {
  const head = `Content-Range: bytes ${offset}-${length - 1}/${length}\r\nContent-Length: ${length - offset}`;
  return answered('206 Partial Content', `${head}\r\n${more}`, whole.slice(offset));
}

function readInput(bytes: Buffer): Here & { readonly sent: readonly Buffer[] } {
  const text = bytes.toString('latin1');
  const [first = '', ...lines] = text.split('\n');
  const [, digits = '0', etag] = /^(\d{1,2}) ?(.*)$/.exec(first) ?? [];
  const sent = lines.join('\n').split(between);
  return {
    offset: Number(digits),
    etag: etag || undefined,
    sent: sent.map((one) => Buffer.from(one, 'latin1')),
  };
}

/** Asserts the requests: first the rest, then only the complete file; only a strong version, without another header line. */
function requireAsked(requests: readonly string[], { offset, etag }: Here): void {
  assert.ok(requests.length <= maxRequests, `${requests.length} requests`);
  const asked = requests.map((request) => ({
    range: /^range: (.*)\r$/im.exec(request)?.[1],
    version: /^if-range: (.*)\r$/im.exec(request)?.[1],
  }));
  for (const [index, { range, version }] of asked.entries()) {
    if (range !== undefined) assert.equal(range, `bytes=${offset}-`);
    if (version !== undefined) assert.deepEqual([version, range], [etag, `bytes=${offset}-`]);
    assert.ok(!version?.startsWith('W/'));
    if (index > 0 && range !== undefined) assert.ok(asked[index - 1]?.range !== undefined, 'a range again');
  }
  if (offset > 0 && asked.length > 0) assert.ok(asked[0]?.range !== undefined, 'not asked for the rest');
}

/** Parses the answer independently of the source: bytes accepted as the rest have a range, and no known other version. */
function requireTheRest(answer: Buffer | undefined, { offset, etag }: Here): void {
  const text = answer?.toString('latin1') ?? '';
  assert.match(text, /^HTTP\/1\.\d 206\b/m);
  const range = `bytes ${offset}-${length - 1}/(${length}|\\*)`;
  assert.match(text, new RegExp(`^content-range[ \\t]*:[ \\t]*${range}[ \\t]*\\r?$`, 'im'));
  const strong = /^"[\x21\x23-\x7e]{1,198}"$/;
  const named = [...text.matchAll(/^etag[ \t]*:[ \t]*(.*?)[ \t]*\r?$/gim)].map(([, one = '']) => one);
  const others = named.filter((one) => strong.test(one));
  if (etag !== undefined && strong.test(etag) && others.length === 1 && named.length === 1) {
    assert.deepEqual(others, [etag]);
  }
}

function raise(error: unknown): never {
  throw error;
}

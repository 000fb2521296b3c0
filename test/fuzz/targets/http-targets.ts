// Targets for HTTP over real sockets of this process: the answers of a server to a host's client, and requests to
// `writ serve`.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { defaultTransportLimits } from '../../../src/core/limits.js';
import { startServer } from '../../../src/server/server.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../src/trust/sources/source.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { rawServer } from '../../kit/net/raw-server.js';
import { archiveFile, writeRepository } from '../../kit/repository/unsigned-repository.js';
import { acceptedOr, type Target } from '../engine/target.js';

const maxBytes = 200;
const headers = [
  'Content-Length: ',
  'Transfer-Encoding: chunked\r\n',
  'ETag: "',
  'Connection: close\r\n',
  '\r\n\r\n',
  '\r\n',
  ': ',
];
const answered = (lines: string, body: string): Buffer =>
  Buffer.from(`HTTP/1.1 ${lines}\r\n\r\n${body}`, 'latin1');

type Fetch = (source: RepositorySource, maxBytes: number) => ReturnType<RepositorySource['fetch']>;

/** @param fetch client under test; a test passes a broken one */
export async function httpAnswersTarget(
  fetch: Fetch = (source, bytes) => source.fetch('metadata/timestamp.json', { maxBytes: bytes }),
): Promise<Target> {
  let answer: Buffer = Buffer.alloc(0);
  const server = await rawServer((socket) => void socket.end(answer));
  const limits = { ...defaultTransportLimits, metadataTimeoutMs: 120_000 };
  const source = openRepositorySource(server.url, { clock: fakeClock(), version: 'fuzz', limits });
  const codes = [
    ...['SERVER_UNREACHABLE', 'SERVER_BUSY', 'SERVER_ERROR', 'REDIRECT_REFUSED'],
    ...['DOWNLOAD_TOO_LARGE', 'DOWNLOAD_TRUNCATED', 'METADATA_MALFORMED'],
  ];
  return {
    name: 'http-answers',
    seeds: [
      answered('200 OK\r\nContent-Length: 5\r\nETag: "x"\r\nConnection: close', 'hello'),
      answered('200 OK\r\nTransfer-Encoding: chunked', '5\r\nhello\r\n0\r\n\r\n'),
      answered('200 OK\r\nConnection: close', 'until the end'),
      answered('302 Found\r\nLocation: /elsewhere\r\nContent-Length: 0', ''),
      answered('503 Busy\r\nRetry-After: 5\r\nContent-Length: 0', ''),
      answered('200 OK\r\nConnection: close', 'x'.repeat(150)),
      answered('304 Not Modified\r\nETag: "x"', ''),
      answered('404 Not Found\r\nContent-Length: 0', ''),
    ],
    tokens: [
      ...headers,
      ...[
        'HTTP/1.1 200 OK\r\n',
        'HTTP/1.1 100 Continue\r\n\r\n',
        '206',
        '304',
        '404',
        '416',
        '429',
        '503',
        'Content-Encoding: gzip\r\n',
      ],
      ...[
        'Retry-After: ',
        'Location: http://127.0.0.1:1/',
        'Content-Range: bytes 0-4/5\r\n',
        'x'.repeat(250),
        '0\r\n\r\n',
        'ffffffff\r\n',
      ],
    ],
    check: async (input) => {
      answer = input;
      const read = await fetch(source, maxBytes).then(
        (value) => ({ value }),
        (error: unknown) => acceptedOr<never>(codes, () => raise(error)),
      );
      if (!('value' in read) || read.value.kind !== 'found') return;
      assert.ok(read.value.bytes.length <= maxBytes, `${read.value.bytes.length} bytes`);
      // The ETag is sent as If-None-Match, so that it must not contain another header line.
      assert.doesNotMatch(read.value.etag ?? '', /[\r\n\0]/);
    },
    close: async () => {
      await source.close();
      await server[Symbol.asyncDispose]();
    },
  };
}

function raise(error: unknown): never {
  throw error;
}

interface Site {
  readonly url: string;
  close(): Promise<void>;
}

/** The last request of each connection; its answer ends the connection. */
const last = Buffer.from(
  '\r\n\r\nGET /metadata/2.root.json HTTP/1.1\r\nHost: last\r\nConnection: close\r\n\r\n',
);
const statuses = new Set([200, 206, 304, 400, 404, 405, 408, 413, 414, 416, 431]);
const secrets = ['secret of the lock', 'secret beside it'];

/** @param start server under test; a test passes a broken one */
export async function httpRequestsTarget(
  start: (repository: string) => Promise<Site> = (repository) =>
    startServer({ repository, host: '127.0.0.1', port: 0, limits: { maxWaitingRequests: 4 } }),
): Promise<Target> {
  const dir = tempDir();
  const repository = dir.join('repo');
  mkdirSync(repository);
  writeRepository(repository);
  writeFileSync(dir.join('secret.json'), 'secret beside it');
  const site = await start(repository);
  const get = (path: string, more = ''): Buffer =>
    Buffer.from(`GET ${path} HTTP/1.1\r\nHost: test\r\n${more}\r\n`, 'latin1');
  return {
    name: 'http-requests',
    seeds: [
      get('/metadata/timestamp.json', 'If-None-Match: "x", W/"y"\r\n'),
      get(`/${archiveFile}`, 'Range: bytes=2-5\r\nIf-Range: "x"\r\n'),
      get('/metadata/1.root.json?x=y', 'Expect: 100-continue\r\n'),
      Buffer.concat([get('/metadata/2.root.json'), get(`/${archiveFile}`), get('/nothing')]),
      Buffer.from('POST /metadata/timestamp.json HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc'),
      get('http://test/metadata/1.snapshot.json'),
    ],
    tokens: [
      ...headers,
      ...[
        'GET ',
        'HEAD ',
        'POST ',
        'TRACE ',
        ' HTTP/1.1\r\n',
        ' HTTP/1.0\r\n',
        'Host: test\r\n',
        'Range: bytes=',
        '-1',
        '0-',
        'bytes=5-2,7-',
      ],
      ...[
        '..',
        '/',
        '/../',
        '%2e%2e',
        '%2f',
        '%00',
        '%c0%ae',
        '\\',
        '.lock',
        'secret.json',
        '/metadata/',
        '/targets/',
        '0\r\n\r\n',
        'x'.repeat(900),
      ],
    ],
    check: async (input) => {
      const text = await exchange(site.url, input);
      for (const [, status] of text.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)) {
        assert.ok(statuses.has(Number(status)), `status ${status}`);
      }
      for (const secret of secrets) assert.ok(!text.includes(secret), secret);
    },
    close: async () => {
      await site.close();
      dir[Symbol.dispose]();
    },
  };
}

/** @returns all bytes until the server closed; throws if it does not close in time */
async function exchange(url: string, input: Buffer): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect(Number(port), hostname);
  const chunks: Buffer[] = [];
  socket.on('data', (chunk: Buffer) => chunks.push(chunk));
  socket.on('error', () => undefined);
  socket.write(Buffer.concat([input, last]));
  const isLate = await Promise.race([once(socket, 'close').then(() => false), timer(30_000)]);
  socket.destroy();
  assert.equal(isLate, false, 'the connection is still open');
  return Buffer.concat(chunks).toString('latin1');
}

function timer(afterMs: number): Promise<true> {
  return new Promise((resolve) => setTimeout(() => resolve(true), afterMs).unref());
}

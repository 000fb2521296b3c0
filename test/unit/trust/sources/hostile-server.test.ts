// Attacks of a server on a client that violate HTTP or its transport: each ends with a code, in bounded time.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import type { ErrorCode } from '../../../../src/core/errors.js';
import { defaultTransportLimits, type TransportLimits } from '../../../../src/core/limits.js';
import { openRepositoryClient } from '../../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../../src/trust/sources/source.js';
import { memoryTrustStore } from '../../../../src/trust/store/trust-store.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { heldTimer } from '../../../kit/clock/held-timer.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../../kit/net/certificate.js';
import { httpFixture } from '../../../kit/net/http-fixture.js';
import { endlessly, rawServer } from '../../../kit/net/raw-server.js';
import { needs } from '../../../kit/programs/real-programs.js';
import { RepositorySimulator } from '../../../kit/repository/repository-simulator.js';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** For servers that must miss the deadline. Other servers may take longer on a busy machine. */
const impatient = { ...defaultTransportLimits, metadataTimeoutMs: 150, archiveTimeoutMs: 150 };

function open(url: string, { limits = defaultTransportLimits, ca }: Opening = {}): RepositorySource {
  const more = ca === undefined ? {} : { ca };
  return openRepositorySource(url, { clock: fakeClock(), version: '9.9.9', limits, ...more });
}

interface Opening {
  readonly limits?: TransportLimits;
  readonly ca?: string;
}

/**
 * After two full collections, because buffers outside the heap are freed by the one after that which finds them unused. How much
 * garbage waits depends on the flags and the version of Node.
 */
function retainedBytes(): number {
  collectGarbage();
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

async function collect(stream: AsyncIterable<Buffer>): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

const head = (lines: string): string => `HTTP/1.1 200 OK\r\n${lines}\r\n`;

const chunked = head('Transfer-Encoding: chunked\r\n');
const hints = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n';
const filler = 'x'.repeat(60_000);

/** As fast as the other side takes it, until it has had enough. */
function flood(socket: Socket, first: string, again: string): void {
  const write = (): void => {
    for (let room = true; room && !socket.destroyed; ) room = socket.write(again);
  };
  socket.on('drain', write);
  socket.write(first);
  write();
}

/** How it answers, and the code of a metadata file and of an archive of 10 kB. */
const answers: Readonly<Record<string, readonly [ErrorCode, ErrorCode, (socket: Socket) => void]>> = {
  'resets the connection amid the body': [
    'DOWNLOAD_TRUNCATED',
    'DOWNLOAD_TRUNCATED',
    (socket) => socket.write(`${head('Content-Length: 10\r\n')}01234`, () => socket.resetAndDestroy()),
  ],
  'resets the connection before it answers': [
    'SERVER_UNREACHABLE',
    'SERVER_UNREACHABLE',
    (socket) => socket.resetAndDestroy(),
  ],
  'ends amid the headers': [
    'SERVER_UNREACHABLE',
    'SERVER_UNREACHABLE',
    (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-'),
  ],
  'ends a chunked body without its last chunk': [
    'DOWNLOAD_TRUNCATED',
    'DOWNLOAD_TRUNCATED',
    (socket) => socket.end(`${head('Transfer-Encoding: chunked\r\n')}5\r\n01234\r\n`),
  ],
  'sends a chunk without a valid size': [
    'SERVER_ERROR',
    'SERVER_ERROR',
    (socket) => socket.end(`${head('Transfer-Encoding: chunked\r\n')}zz\r\n01234\r\n`),
  ],
  'drips a chunked body without end': [
    'DOWNLOAD_TIMEOUT',
    'DOWNLOAD_TIMEOUT',
    (socket) => {
      socket.write(head('Transfer-Encoding: chunked\r\n'));
      endlessly(socket, '1\r\n.\r\n', 20);
    },
  ],
  'sends headers without end': [
    'SERVER_ERROR',
    'SERVER_ERROR',
    (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n');
      endlessly(socket, `X-Filler: ${'x'.repeat(1000)}\r\n`, 1);
    },
  ],
  'sends only "continue"': [
    'SERVER_UNREACHABLE',
    'SERVER_UNREACHABLE',
    (socket) => endlessly(socket, 'HTTP/1.1 100 Continue\r\n\r\n', 1),
  ],
  'floods the line of the status': [
    'DOWNLOAD_TIMEOUT',
    'DOWNLOAD_TIMEOUT',
    (socket) => flood(socket, 'HTTP/1.1 200 ', filler),
  ],
  'floods one header': [
    'SERVER_ERROR',
    'SERVER_ERROR',
    (socket) => flood(socket, 'HTTP/1.1 200 OK\r\nA: ', filler),
  ],
  'floods empty headers': [
    'SERVER_ERROR',
    'SERVER_ERROR',
    (socket) => flood(socket, 'HTTP/1.1 200 OK\r\n', 'a:\r\n'.repeat(10_000)),
  ],
  'floods trailers': [
    'SERVER_ERROR',
    'SERVER_ERROR',
    (socket) => flood(socket, `${chunked}1\r\n.\r\n0\r\n`, 'A: b\r\n'.repeat(5000)),
  ],
  'floods the extension of a chunk': [
    'DOWNLOAD_TIMEOUT',
    'DOWNLOAD_TIMEOUT',
    (socket) => flood(socket, `${chunked}1;`, filler),
  ],
  'floods the size of a chunk': [
    'DOWNLOAD_TIMEOUT',
    'DOWNLOAD_TIMEOUT',
    (socket) => flood(socket, chunked, '0'.repeat(60_000)),
  ],
  'names two lengths': [
    'SERVER_ERROR',
    'SERVER_ERROR',
    (socket) => socket.end(`${head('Content-Length: 10\r\nContent-Length: 5\r\n')}0123456789`),
  ],
  'names a length and chunks': [
    'SERVER_ERROR',
    'SERVER_ERROR',
    (socket) => socket.end(`${head('Content-Length: 10\r\nTransfer-Encoding: chunked\r\n')}0\r\n\r\n`),
  ],
  'compresses the body without a request for it': [
    'SERVER_ERROR',
    'SERVER_ERROR',
    (socket) => {
      const bomb = gzipSync(Buffer.alloc(1_000_000));
      socket.write(head(`Content-Encoding: gzip\r\nContent-Length: ${bomb.length}\r\n`));
      socket.write(bomb);
    },
  ],
};

describe('a hostile server that', () => {
  for (const [what, [ofMetadata, ofArchive, answer]] of Object.entries(answers)) {
    it(`${what}: ${ofMetadata}`, async () => {
      await using server = await rawServer(answer);
      const source = open(server.url, ofMetadata === 'DOWNLOAD_TIMEOUT' ? { limits: impatient } : {});
      await rejectsCode(ofMetadata, source.fetch('x', { maxBytes: 100 }));
      await rejectsCode(ofArchive, collect(source.stream('x', { length: 10_000 })));
      await source.close();
    });
  }

  it('sends "early hints" without end is abandoned long before the deadline: SERVER_ERROR', async () => {
    await using server = await rawServer((socket) => endlessly(socket, hints, 1));
    const limits = { ...defaultTransportLimits, metadataTimeoutMs: 60_000, archiveTimeoutMs: 60_000 };
    const source = open(server.url, { limits });
    await rejectsCode('SERVER_ERROR', source.fetch('x', { maxBytes: 100 }));
    await rejectsCode('SERVER_ERROR', collect(source.stream('x', { length: 10_000 })));
    await source.close();
  });

  it('sends "early hints" a few times is accepted', async () => {
    await using server = await rawServer((socket) => {
      socket.end(`${hints.repeat(16)}${head('Content-Length: 5\r\n')}hello`);
    });
    const source = open(server.url);
    const verdict = await source.fetch('x', { maxBytes: 5 });
    assert.equal(verdict.kind === 'found' && verdict.bytes.toString(), 'hello');
    await source.close();
  });

  it('sends endless data outside of a body does not exhaust the memory', async () => {
    const growth = async (first: string, again: string): Promise<number> => {
      await using server = await rawServer((socket) => flood(socket, first, again));
      const source = open(server.url, { limits: { ...impatient, metadataTimeoutMs: 1000 } });
      const before = retainedBytes();
      let most = 0;
      const watch = setInterval(() => {
        most = Math.max(most, retainedBytes() - before);
      }, 100);
      await assert.rejects(source.fetch('x', { maxBytes: 100 }));
      clearInterval(watch);
      await source.close();
      return most;
    };
    // The first request loads the client, which stays in memory.
    await growth('HTTP/1.1 200 ', filler);
    for (const [first, again] of [
      ['HTTP/1.1 200 ', filler],
      ['HTTP/1.1 200 OK\r\nX-Filler: ', filler],
      [`${chunked}1;`, filler],
      [chunked, '0'.repeat(60_000)],
    ] as const) {
      assert.ok((await growth(first, again)) < 5_000_000);
    }
  });

  it('declares less than it sends cuts its own body short, and no byte goes over into the next answer', async () => {
    await using server = await rawServer((socket) => {
      socket.write(`${head('Content-Length: 5\r\n')}0123456789`);
      socket.on('data', () => socket.write(`${head('Content-Length: 4\r\n')}next`));
    });
    const source = open(server.url);
    const first = await source.fetch('x', { maxBytes: 100 });
    assert.equal(first.kind === 'found' && first.bytes.toString(), '01234');
    await rejectsCode('DOWNLOAD_TRUNCATED', collect(source.stream('x', { length: 10 })));
    await source.close();
  });

  it('answers on IPv6 is accepted', async (t) => {
    const server = await rawServer(
      (socket) => socket.end(`${head('Content-Length: 5\r\n')}hello`),
      '::1',
    ).catch(() => undefined);
    if (server === undefined) return t.skip('no IPv6 on this machine');
    await using _ = server;
    const source = open(server.url);
    const verdict = await source.fetch('x', { maxBytes: 5 });
    assert.equal(verdict.kind === 'found' && verdict.bytes.toString(), 'hello');
    assert.ok(source.location.startsWith('http://[::1]:'));
    await source.close();
  });

  it('has a certificate for another name is not reached', needs('openssl', 'openssl'), async () => {
    using dir = tempDir();
    const { certFile, keyFile } = await makeCertificate(dir.path, 'elsewhere');
    const ca = readFileSync(certFile, 'utf8');
    const server = createServer({ cert: ca, key: readFileSync(keyFile) }, (_request, response) => {
      response.end('hello');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    // The certificate holds for 127.0.0.1 and not for this name of the same address.
    const source = open(`https://localhost:${port}/`, { ca });
    const error = await rejectsCode('SERVER_UNREACHABLE', source.fetch('x', { maxBytes: 5 }));
    assert.equal(error.facts['errno'], 'ERR_TLS_CERT_ALTNAME_INVALID');
    assert.match(error.hint, /^Set `ca` of the repository/);
    await source.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  it('uses plain HTTP where TLS is expected, or the reverse, is not reached', async () => {
    await using server = await httpFixture((_request, response) => response.end('hello'));
    const source = open(server.url.replace('http:', 'https:'));
    const error = await rejectsCode('SERVER_UNREACHABLE', source.fetch('x', { maxBytes: 5 }));
    assert.match(error.message, /: what answers there does not speak TLS$/);
    assert.match(error.hint, /http:\/\/ in `repository`/);
    await source.close();
  });
});

describe('a refresh from a server that', () => {
  const nowMs = Date.UTC(2026, 10, 1);
  for (const [status, code] of [
    [403, 'SERVER_ERROR'],
    [401, 'SERVER_ERROR'],
    [410, 'SERVER_ERROR'],
    [500, 'SERVER_ERROR'],
    [502, 'SERVER_ERROR'],
  ] as const) {
    it(`answers ${status} for the next root ends there: only 404 is the end of the chain`, async () => {
      const repository = new RepositorySimulator({ nowMs });
      await using server = await httpFixture((request, response) => {
        const bytes = repository.files.get(request.url?.slice(1) ?? '');
        if (bytes === undefined) response.writeHead(status).end();
        else response.end(bytes);
      });
      const source = open(server.url);
      const store = memoryTrustStore(repository.bootstrapRoot);
      const client = openRepositoryClient({ source, store, clock: fakeClock({ nowMs }) });
      const error = await rejectsCode(code, client.refresh());
      assert.equal(error.facts['status'], status);
      assert.deepEqual(
        server.requests.map((one) => one.url),
        ['/metadata/2.root.json'],
      );
      await client.close();
    });
  }

  it('answers every request just before its deadline is left after the deadline of the refresh', async (t) => {
    const refreshTimeoutMs = 61_002;
    const deadline = heldTimer(t, refreshTimeoutMs);
    const repository = new RepositorySimulator({ nowMs });
    for (let count = 0; count < 50; count += 1) repository.bumpRoot();
    await using server = await httpFixture((request, response) => {
      if (server.requests.length === 10) void deadline.fire();
      else response.end(repository.files.get(request.url?.slice(1) ?? ''));
    });
    const transport = { ...defaultTransportLimits, refreshTimeoutMs };
    const source = open(server.url);
    const store = memoryTrustStore(repository.bootstrapRoot);
    const client = openRepositoryClient({ source, store, clock: fakeClock({ nowMs }), transport });
    const error = await rejectsCode('DOWNLOAD_TIMEOUT', client.refresh());
    assert.equal(error.facts.expected, refreshTimeoutMs);
    assert.equal(client.status()?.roles.root?.version, 10, 'nine new roots are kept');
    await client.close();
  });
});

// Attacks of a server on a refresh over real HTTP: it truncates, extends, delays, compresses or fails. For each file the refresh
// ends in time with a code, the trusted files stay, and the next honest response is accepted.
import assert from 'node:assert/strict';
import type { ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { gzipSync } from 'node:zlib';
import { defaultTransportLimits, type TransportLimits } from '../../../../src/core/limits.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import type { RepositorySource } from '../../../../src/trust/sources/source.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { sourceByPath } from '../../../kit/net/bent-server.js';
import { type HttpFixture, httpFixture } from '../../../kit/net/http-fixture.js';
import { type TrustBench, trustBench, type Verdict } from '../../../kit/trust/trust-bench.js';

type Bend = (response: ServerResponse, bytes: Buffer) => void;

interface Server {
  /** How the file of this name is answered; the others are honest. */
  bent: { readonly name: string; readonly bend: Bend } | undefined;
}

interface HttpBench {
  readonly bench: TrustBench;
  readonly http: HttpFixture;
  readonly server: Server;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Deadlines short enough to wait for, for the one file that must miss them; the defaults elsewhere, however slow we are. */
const impatient = { ...defaultTransportLimits, idleTimeoutMs: 120, metadataTimeoutMs: 400 };

async function httpBench(code: Verdict): Promise<HttpBench> {
  const server: Server = { bent: undefined };
  const files = new Map<string, Buffer>();
  const http = await httpFixture((request, response) => {
    const name = request.url?.replace('/metadata/', '') ?? '';
    const bytes = files.get(`metadata/${name}`);
    if (server.bent?.name === name && bytes !== undefined) return server.bent.bend(response, bytes);
    response.writeHead(bytes === undefined ? 404 : 200);
    response.end(bytes);
  });
  const open = (limits: TransportLimits): RepositorySource =>
    openRepositorySource(http.url, { clock: fakeClock(), version: '9.9.9', limits });
  const patient = open(defaultTransportLimits);
  const strict = open(impatient);
  const source = sourceByPath((path) =>
    code === 'DOWNLOAD_TIMEOUT' && path === `metadata/${server.bent?.name}` ? strict : patient,
  );
  const bench = trustBench({ source: () => source });
  const share = (): void => {
    for (const [path, bytes] of bench.repository.files) files.set(path, bytes);
  };
  const publish = bench.repository.publish.bind(bench.repository);
  bench.repository.publish = () => {
    publish();
    share();
  };
  share();
  return {
    bench,
    http,
    server,
    [Symbol.asyncDispose]: async () => {
      await patient.close();
      await strict.close();
      await http[Symbol.asyncDispose]();
      bench[Symbol.dispose]();
    },
  };
}

function drip(response: ServerResponse, everyMs: number): void {
  const timer = setInterval(() => response.write(' '), everyMs);
  response.on('close', () => clearInterval(timer));
}

function flood(response: ServerResponse, byteCount: number): void {
  const chunk = Buffer.alloc(65_536, 0x20);
  let left = byteCount;
  const more = (): void => {
    while (left > 0 && !response.destroyed) {
      left -= chunk.length;
      if (!response.write(chunk)) {
        response.once('drain', more);
        return;
      }
    }
    if (!response.destroyed) response.end();
  };
  more();
}

const rows: readonly [string, Verdict, Bend][] = [
  [
    'is 50 MB long, with that Content-Length',
    'DOWNLOAD_TOO_LARGE',
    (response) => {
      response.writeHead(200, { 'content-length': 50_000_000 });
      flood(response, 50_000_000);
    },
  ],
  [
    'is 50 MB long, without a Content-Length',
    'DOWNLOAD_TOO_LARGE',
    (response) => flood(response, 50_000_000),
  ],
  ['drips without end', 'DOWNLOAD_TIMEOUT', (response) => drip(response, 10)],
  ['comes whole, and never ends', 'DOWNLOAD_TIMEOUT', (response, bytes) => response.write(bytes)],
  ['never begins', 'DOWNLOAD_TIMEOUT', () => undefined],
  [
    'stops after its headers',
    'DOWNLOAD_TIMEOUT',
    (response) => {
      response.writeHead(200);
      response.flushHeaders();
    },
  ],
  [
    'is shorter than declared',
    'DOWNLOAD_TRUNCATED',
    (response, bytes) => {
      response.writeHead(200, { 'content-length': bytes.length + 1 });
      response.write(bytes, () => response.destroy());
    },
  ],
  [
    'is longer than declared',
    'METADATA_MALFORMED',
    (response, bytes) => {
      // Only the declared length is read, which is half of the file.
      response.strictContentLength = false;
      response.writeHead(200, { 'content-length': bytes.length - 1 });
      response.end(bytes);
    },
  ],
  [
    'is a gzip bomb with a Content-Encoding',
    'SERVER_ERROR',
    (response) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(gzipSync(Buffer.alloc(20_000_000)));
    },
  ],
  [
    'is a gzip bomb without a Content-Encoding',
    'DOWNLOAD_TOO_LARGE',
    (response) => {
      response.end(gzipSync(Buffer.alloc(20_000_000)));
    },
  ],
  [
    'is honest, and compressed',
    'SERVER_ERROR',
    (response, bytes) => {
      response.writeHead(200, { 'content-encoding': 'gzip' });
      response.end(gzipSync(bytes));
    },
  ],
  ...[400, 401, 403, 410, 418, 500, 502, 503, 504].map((status): [string, Verdict, Bend] => [
    `is answered with ${status}`,
    'SERVER_ERROR',
    (response, bytes) => {
      response.writeHead(status);
      response.end(bytes);
    },
  ]),
  [
    'is answered with "come back later"',
    'SERVER_BUSY',
    (response) => {
      response.writeHead(503, { 'retry-after': '120' });
      response.end();
    },
  ],
  [
    'is somewhere else',
    'REDIRECT_REFUSED',
    (response) => {
      response.writeHead(302, { location: 'http://127.0.0.1:9/' });
      response.end();
    },
  ],
  ['is the page of a hotel', 'METADATA_MALFORMED', (response) => response.end('<html>Welcome!</html>')],
  [
    'is "not modified" for a request without an ETag',
    'SERVER_ERROR',
    (response) => {
      response.writeHead(304);
      response.end();
    },
  ],
];

describe('a timestamp, over HTTP, that', longCase, () => {
  for (const [name, code, bend] of rows) {
    it(`${name}: ${code}`, async () => {
      await using it = await httpBench(code);
      await trustThenBend(it, 'timestamp.json', bend);
      // A stored ETag would make the question conditional: the answers above are to one that is not.
      it.bench.restart();
      assert.equal(await it.bench.refresh(), code);
      await comesBack(it, { root: 1, snapshot: 1, targets: 1, timestamp: 1 });
    });
  }
});

describe('any other file, over HTTP, that', longCase, () => {
  const files = [
    ['2.root.json', { root: 1, snapshot: 1, targets: 1, timestamp: 1 }],
    ['2.snapshot.json', { root: 2, snapshot: 1, targets: 1, timestamp: 2 }],
    ['2.targets.json', { root: 2, snapshot: 2, targets: 1, timestamp: 2 }],
  ] as const;
  for (const [file, stored] of files) {
    it(`fails, floods or drips as ${file} stops the refresh just there`, async () => {
      for (const [, code, bend] of rows.filter(([name]) =>
        /bomb that says|500|drips|does not say so/.test(name),
      )) {
        await using it = await httpBench(code);
        it.bench.repository.bumpRoot();
        it.bench.repository.files.delete('metadata/2.root.json');
        await it.bench.refresh();
        it.bench.repository.writeRoot();
        await trustThenBend(it, file, bend);
        assert.equal(await it.bench.refresh(), code);
        await comesBack(it, stored);
      }
    });
  }
});

async function trustThenBend({ bench, server }: HttpBench, name: string, bend: Bend): Promise<void> {
  assert.equal(await bench.refresh(), 'trusted');
  bench.repository.publish();
  server.bent = { name, bend };
}

/** Asserts that the trusted files are unchanged, and that an honest response is accepted. */
async function comesBack({ bench, server }: HttpBench, stored: Record<string, number>): Promise<void> {
  assert.deepEqual(bench.stored(), stored);
  server.bent = undefined;
  assert.equal(await bench.refresh(), 'trusted');
  assert.equal(bench.stored()['targets'], 2);
}

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { defaultTransportLimits } from '../../../../src/core/limits.js';
import { requireFound } from '../../../../src/trust/metadata-requests.js';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import type { FetchVerdict, RepositorySource } from '../../../../src/trust/sources/source.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { makeCertificate } from '../../../kit/net/certificate.js';
import { httpFixture } from '../../../kit/net/http-fixture.js';
import { needs } from '../../../kit/programs/real-programs.js';

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

function open(
  url: string,
  more: { readonly ca?: string; readonly redirects?: readonly string[]; readonly totalMs?: number } = {},
): RepositorySource {
  const { totalMs = 60_000, ...rest } = more;
  const limits = { ...defaultTransportLimits, metadataTimeoutMs: totalMs };
  return openRepositorySource(url, { clock: fakeClock(), version: '9.9.9', limits, ...rest });
}

const to =
  (location: string, status = 302): Answer =>
  (_request, response) => {
    response.writeHead(status, { location });
    response.end('moved');
  };

async function text(source: RepositorySource, path: string): Promise<string> {
  const verdict = await source.fetch(path, { maxBytes: 100, etag: '"v1"' });
  return verdict.kind === 'found' ? verdict.bytes.toString() : verdict.kind;
}

describe('http source: redirects on the same server', () => {
  it('are reported if the target is absent', async () => {
    await using server = await httpFixture((request, response) => {
      if (request.url === '/a') return to('/elsewhere')(request, response);
      response.writeHead(404).end();
    });
    const source = open(server.url);
    const absent = { kind: 'absent', redirectedTo: new URL('/elsewhere', server.url).href };
    assert.deepEqual(await source.fetch('a', { maxBytes: 100 }), absent);
    assert.throws(() => requireFound(absent as FetchVerdict, 'timestamp', 'timestamp.json'), {
      code: 'METADATA_MISSING',
      message: /sends us to http.*elsewhere/,
    });
    assert.deepEqual(await source.fetch('b', { maxBytes: 100 }), { kind: 'absent' });
    await source.close();
  });

  for (const status of [301, 302, 303, 307, 308]) {
    it(`are followed (${status}), with the headers of the request, over one connection`, async () => {
      await using server = await httpFixture((request, response) => {
        if (request.url === '/a') return to('/b/c', status)(request, response);
        response.end('here');
      });
      const source = open(server.url);
      assert.equal(await text(source, 'a'), 'here');
      assert.deepEqual(
        server.requests.map((one) => [one.method, one.url, one.headers['if-none-match']]),
        [
          ['GET', '/a', '"v1"'],
          ['GET', '/b/c', '"v1"'],
        ],
      );
      assert.equal(server.connections(), 1);
      await source.close();
    });
  }

  it('keep the range of an archive, and the response is checked as usual', async () => {
    await using server = await httpFixture((request, response) => {
      if (request.url === '/a') return to('/b')(request, response);
      assert.equal(request.headers.range, 'bytes=4-');
      response.writeHead(206, { 'content-range': 'bytes 4-9/10' });
      response.end('456789');
    });
    const source = open(server.url);
    const chunks: Buffer[] = [];
    for await (const chunk of source.stream('a', { length: 10, offset: 4 })) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), '456789');
    await source.close();
  });

  it('end after five, and an absent file behind one is absent', async () => {
    await using loop = await httpFixture(to('/again'));
    const source = open(loop.url);
    await rejectsCode('REDIRECT_REFUSED', source.fetch('a', { maxBytes: 10 }));
    assert.equal(loop.requests.length, 6);
    await source.close();

    await using server = await httpFixture((request, response) => {
      if (request.url === '/2.root.json') return to('/none')(request, response);
      response.writeHead(404).end();
    });
    const other = open(server.url);
    assert.equal(await text(other, '2.root.json'), 'absent');
    await other.close();
  });

  it('come under the one deadline of the request', async () => {
    await using server = await httpFixture((request, response) => {
      if (request.url === '/a') to('/b')(request, response);
    });
    const source = open(server.url, { totalMs: 60 });
    await rejectsCode('DOWNLOAD_TIMEOUT', source.fetch('a', { maxBytes: 10 }));
    await source.close();
  });
});

describe('http source: redirects elsewhere', () => {
  it('are refused by default: another port, another name of the same machine, a file', async () => {
    await using other = await httpFixture((_request, response) => response.end('stranger'));
    const named = other.url.replace('127.0.0.1', 'localhost');
    for (const location of [other.url, named, 'file:///etc/passwd', 'https://127.0.0.1/']) {
      await using server = await httpFixture(to(location));
      const source = open(server.url, { redirects: [new URL(other.url).host] });
      const error = await rejectsCode('REDIRECT_REFUSED', source.fetch('a', { maxBytes: 10 }));
      assert.equal(error.facts['location'], location);
      await source.close();
    }
    assert.equal(other.requests.length, 0);
  });

  it('lead to a configured host over https, and from there never to plain http', {
    ...needs('openssl', 'openssl'),
    ...longCase,
  }, async () => {
    using dir = tempDir();
    const { certFile, keyFile } = await makeCertificate(dir.path, 'cdn');
    const ca = readFileSync(certFile, 'utf8');
    await using plain = await httpFixture((_request, response) => response.end('plain'));
    const answer: Answer = (request, response) => {
      if (request.url === '/plain') return to(plain.url)(request, response);
      response.end('from the cdn');
    };
    const server = createServer({ cert: ca, key: readFileSync(keyFile) }, answer);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    await using origin = await httpFixture((request, response) =>
      to(`https://${host}${request.url}`)(request, response),
    );
    const trusting = open(origin.url, { ca, redirects: [host] });
    assert.equal(await text(trusting, 'a'), 'from the cdn');
    await rejectsCode('REDIRECT_REFUSED', trusting.fetch('plain', { maxBytes: 10 }));
    const stranger = open(origin.url, { redirects: [host] });
    await rejectsCode('SERVER_UNREACHABLE', stranger.fetch('a', { maxBytes: 10 }));
    const careful = open(origin.url, { ca });
    await rejectsCode('REDIRECT_REFUSED', careful.fetch('a', { maxBytes: 10 }));
    assert.equal(plain.requests.length, 0);
    for (const source of [trusting, stranger, careful]) await source.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
});

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { describe, it } from 'node:test';
import { openRepositorySource } from '../../../../src/trust/sources/repository-source.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { always, bench, nowMs, open } from '../../../kit/net/http-bench.js';
import { httpFixture } from '../../../kit/net/http-fixture.js';
import { needs } from '../../../kit/programs/real-programs.js';

describe('http source: fetch', () => {
  it('gets a file with its ETag, sends a User-Agent, and accepts no encoding', async () => {
    await using it = await bench(always(200, { etag: '"v1"' }, 'hello'));
    const verdict = await it.source.fetch('metadata/timestamp.json', { maxBytes: 5 });
    assert.ok(verdict.kind === 'found');
    assert.equal(verdict.bytes.toString(), 'hello');
    assert.equal(verdict.etag, '"v1"');
    const [request] = it.server.requests;
    assert.equal(request?.method, 'GET');
    assert.equal(request?.url, '/metadata/timestamp.json');
    assert.equal(request?.headers['user-agent'], 'writ/9.9.9');
    assert.equal(request?.headers['accept-encoding'], 'identity');
  });

  it('keeps the path of the base URL and sends encoded names as they are', async () => {
    await using it = await bench(always(200));
    const source = open(`${it.server.url}repo/v1`);
    await source.fetch('metadata/1.a%2F%3F%23.json', { maxBytes: 10 });
    assert.equal(it.server.requests[0]?.url, '/repo/v1/metadata/1.a%2F%3F%23.json');
    await source.close();
  });

  it('sends the ETag it was given and reports "not modified"', async () => {
    await using it = await bench(always(304));
    const verdict = await it.source.fetch('timestamp.json', { maxBytes: 10, etag: '"v1"' });
    assert.equal(verdict.kind, 'not-modified');
    assert.equal(it.server.requests[0]?.headers['if-none-match'], '"v1"');
    await rejectsCode('SERVER_ERROR', it.source.fetch('timestamp.json', { maxBytes: 10 }));
  });

  it('uses one connection for a whole refresh, absent files included', async () => {
    await using it = await bench((request, response) => {
      response.statusCode = request.url === '/2.root.json' ? 404 : 200;
      response.end('not here');
    });
    assert.equal((await it.source.fetch('2.root.json', { maxBytes: 10 })).kind, 'absent');
    for (const name of ['timestamp.json', '1.snapshot.json']) await it.source.fetch(name, { maxBytes: 10 });
    assert.equal(it.server.connections(), 1);
  });

  it('refuses a path that leads out, before anything is sent', async () => {
    await using it = await bench(always(200));
    for (const path of ['../secret', 'a/../b', 'a//b', '%2e%2e/x', './a', 'a%00b', '%zz', '']) {
      await rejectsCode('METADATA_MALFORMED', it.source.fetch(path, { maxBytes: 10 }));
    }
    assert.equal(it.server.requests.length, 0);
  });
});

describe('http source: answers that are refused', () => {
  for (const status of [301, 302, 303, 307, 308, 300]) {
    it(`does not follow a redirect to a file (${status})`, async () => {
      await using it = await bench(always(status, { location: 'file:///etc/passwd' }));
      await rejectsCode(
        status === 300 ? 'SERVER_ERROR' : 'REDIRECT_REFUSED',
        it.source.fetch('x', { maxBytes: 10 }),
      );
      assert.equal(it.server.requests.length, 1);
    });
  }

  for (const status of [204, 400, 403, 408, 410, 429, 500, 503]) {
    it(`reports status ${status}: only 404 means absent`, async () => {
      await using it = await bench(always(status));
      const error = await rejectsCode('SERVER_ERROR', it.source.fetch('x', { maxBytes: 10 }));
      assert.equal(error.facts['status'], status);
    });
  }

  for (const [value, expected] of [
    ['7', 7000],
    ['0', 0],
    ['999999999', 3_600_000],
    [new Date(nowMs + 90_000).toUTCString(), 90_000],
    [new Date(nowMs - 90_000).toUTCString(), 0],
  ] as const) {
    it(`obeys Retry-After: ${value}`, async () => {
      await using it = await bench(always(value === '7' ? 429 : 503, { 'retry-after': value }));
      const error = await rejectsCode('SERVER_BUSY', it.source.fetch('x', { maxBytes: 10 }));
      assert.equal(error.facts['retryAfterMs'], expected);
    });
  }

  it('treats an invalid Retry-After as an ordinary error', async () => {
    await using it = await bench(always(503, { 'retry-after': '-5' }));
    await rejectsCode('SERVER_ERROR', it.source.fetch('x', { maxBytes: 10 }));
  });

  it('refuses a body with a content encoding', async () => {
    await using it = await bench(always(200, { 'content-encoding': 'gzip' }, 'bomb'));
    const error = await rejectsCode('SERVER_ERROR', it.source.fetch('x', { maxBytes: 10 }));
    assert.equal(error.facts.actual, 'gzip');
  });

  it('refuses a response that is not HTTP', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined);
      socket.end('SSH-2.0-OpenSSH_9.2\r\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const source = open(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    await rejectsCode('SERVER_ERROR', source.fetch('x', { maxBytes: 10 }));
    await source.close();
    server.close();
  });

  it('names the system error when no server listens', async () => {
    const server = await httpFixture(always(200));
    await server[Symbol.asyncDispose]();
    const source = open(server.url);
    const error = await rejectsCode('SERVER_UNREACHABLE', source.fetch('x', { maxBytes: 10 }));
    assert.equal(error.facts['errno'], 'ECONNREFUSED');
    await source.close();
  });
});

describe('openRepositorySource', () => {
  it('refuses anything but a plain http, https or file URL', () => {
    for (const location of [
      'ftp://example.net/',
      '/srv/repository',
      'https://user:secret@example.net/',
      'https://example.net/?a=b',
      'https://example.net/#top',
      'file://host/srv/repository',
      'file:///srv/a%2Fb',
      '',
    ]) {
      const error = throwsCode('CONFIG_INVALID', () => open(location));
      assert.equal(JSON.stringify(error).includes('secret'), false);
    }
  });
});

describe('http source: TLS', () => {
  it('trusts only the configured certificate authority', needs('openssl', 'openssl'), async () => {
    using dir = tempDir();
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'];
    const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'];
    const output = ['-keyout', dir.join('key.pem'), '-out', dir.join('cert.pem')];
    execFileSync('openssl', ['req', '-x509', '-nodes', ...curve, ...subject, ...output], { stdio: 'ignore' });
    const ca = readFileSync(dir.join('cert.pem'), 'utf8');
    const server = createTlsServer(
      { cert: ca, key: readFileSync(dir.join('key.pem')) },
      (_request, response) => {
        response.end('hello');
      },
    );
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    const trusting = openRepositorySource(url, { clock: fakeClock(), version: '9.9.9', ca });
    const stranger = open(url);
    assert.equal((await trusting.fetch('x', { maxBytes: 5 })).kind, 'found');
    const error = await rejectsCode('SERVER_UNREACHABLE', stranger.fetch('x', { maxBytes: 5 }));
    assert.equal(error.facts['errno'], 'DEPTH_ZERO_SELF_SIGNED_CERT');
    await trusting.close();
    await stranger.close();
    await new Promise((resolve) => server.close(resolve));
  });
});

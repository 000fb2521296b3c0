import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { connect, createServer } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { isWritError, type WritError } from '../../../src/core/errors.js';
import { type RunningServer, startServer } from '../../../src/server/server.js';
import type { ServerLimits } from '../../../src/server/server-limits.js';
import { until } from '../../kit/assert/until.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { hostileClient } from '../../kit/net/hostile-client.js';
import { rawGet, rawRequest } from '../../kit/net/raw-request.js';
import {
  archiveBytes,
  archiveFile,
  replaceFile,
  roleBytes,
  writeRepository,
} from '../../kit/repository/unsigned-repository.js';

const immutable = 'public, max-age=31536000, immutable';

describe('server', () => {
  let dir: TempDir;
  let server: RunningServer;
  const get = (path: string, init: RequestInit = {}): Promise<Response> => fetch(server.url + path, init);

  before(async () => {
    dir = tempDir();
    writeRepository(dir.path);
    server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0 });
  });
  after(async () => {
    await server.close();
    dir[Symbol.dispose]();
  });

  describe('timestamp.json', () => {
    it('has the digest of its bytes as a strong ETag and is asked for each time', async () => {
      const response = await get('/metadata/timestamp.json');
      const bytes = Buffer.from(await response.arrayBuffer());
      assert.equal(response.status, 200);
      assert.deepEqual(bytes, fs.readFileSync(dir.join('metadata/timestamp.json')));
      const digest = createHash('sha256').update(bytes).digest('hex');
      assert.equal(response.headers.get('etag'), `"${digest}"`);
      assert.equal(response.headers.get('cache-control'), 'no-cache');
      assert.equal(response.headers.get('content-type'), 'application/json');
      assert.equal(response.headers.get('x-content-type-options'), 'nosniff');
    });

    it('is 304 without a body for whoever has it', async () => {
      const etag = (await get('/metadata/timestamp.json')).headers.get('etag') ?? '';
      const again = await get('/metadata/timestamp.json', { headers: { 'if-none-match': etag } });
      assert.equal(again.status, 304);
      assert.equal(again.headers.get('etag'), etag);
      assert.equal(await again.text(), '');
    });

    it('shows a publish at once, even one of equal size', async () => {
      const etag = (await get('/metadata/timestamp.json')).headers.get('etag') ?? '';
      for (const version of [2, 3, 4]) {
        const bytes = roleBytes('timestamp', { version, meta: { 'snapshot.json': { version: 1 } } });
        replaceFile(dir.path, 'metadata/timestamp.json', bytes);
        const response = await get('/metadata/timestamp.json', { headers: { 'if-none-match': etag } });
        assert.equal(response.status, 200);
        assert.equal(await response.text(), bytes);
      }
    });

    it('shows a publish at once although size and mtime were restored, as rsync does', async () => {
      const path = dir.join('metadata/timestamp.json');
      const { mtime } = fs.statSync(path);
      const bytes = fs.readFileSync(path, 'utf8').replace('2999', '2998');
      await get('/metadata/timestamp.json');
      replaceFile(dir.path, 'metadata/timestamp.json', bytes);
      fs.utimesSync(path, mtime, mtime);
      assert.equal(await (await get('/metadata/timestamp.json')).text(), bytes);
    });

    it('is 404 while it is away, and not an answer of the past', async () => {
      const path = dir.join('metadata/timestamp.json');
      const bytes = fs.readFileSync(path);
      await get('/metadata/timestamp.json');
      fs.rmSync(path);
      assert.equal((await get('/metadata/timestamp.json')).status, 404);
      fs.writeFileSync(path, bytes);
      assert.equal((await get('/metadata/timestamp.json')).status, 200);
    });

    it('is an error, without its bytes, when it is endless', async () => {
      const path = dir.join('metadata/timestamp.json');
      const bytes = fs.readFileSync(path);
      replaceFile(dir.path, 'metadata/timestamp.json', Buffer.alloc(20_000, 0x20));
      const response = await get('/metadata/timestamp.json');
      assert.equal(response.status, 500);
      assert.equal(await response.text(), 'server error\n');
      replaceFile(dir.path, 'metadata/timestamp.json', bytes);
    });
  });

  describe('immutable files', () => {
    it('are cached for ever, metadata as JSON and archives as bytes without an encoding', async () => {
      const snapshot = await get('/metadata/1.snapshot.json');
      assert.equal(snapshot.headers.get('cache-control'), immutable);
      assert.equal(snapshot.headers.get('content-type'), 'application/json');
      assert.equal(await snapshot.text(), fs.readFileSync(dir.join('metadata/1.snapshot.json'), 'utf8'));
      const archive = await get(`/${archiveFile}`);
      assert.equal(archive.headers.get('cache-control'), immutable);
      assert.equal(archive.headers.get('content-type'), 'application/octet-stream');
      assert.equal(archive.headers.get('content-encoding'), null);
      assert.equal(archive.headers.get('accept-ranges'), 'bytes');
      assert.equal(archive.headers.get('content-length'), String(archiveBytes.length));
      assert.equal(await archive.text(), archiveBytes);
    });

    it('are 304 for whoever has them', async () => {
      const etag = (await get(`/${archiveFile}`)).headers.get('etag') ?? '';
      const again = await get(`/${archiveFile}`, { headers: { 'if-none-match': `W/${etag}, "other"` } });
      assert.equal(again.status, 304);
      assert.equal(await again.text(), '');
    });

    it('answer HEAD with the headers of GET', async () => {
      const head = await get(`/${archiveFile}`, { method: 'HEAD', headers: { range: 'bytes=0-3' } });
      const full = await get(`/${archiveFile}`);
      assert.equal(head.status, 200);
      assert.equal(await head.text(), '');
      for (const name of ['content-length', 'content-type', 'etag', 'cache-control', 'accept-ranges']) {
        assert.equal(head.headers.get(name), full.headers.get(name), name);
      }
      await full.text();
    });

    it('give a part of themselves', async () => {
      const part = await get(`/${archiveFile}`, { headers: { range: 'bytes=4-6' } });
      assert.equal(part.status, 206);
      assert.equal(part.headers.get('content-range'), 'bytes 4-6/16');
      assert.equal(part.headers.get('content-length'), '3');
      assert.equal(await part.text(), archiveBytes.slice(4, 7));
      const tail = await get(`/${archiveFile}`, { headers: { range: 'bytes=-4' } });
      assert.equal(await tail.text(), archiveBytes.slice(-4));
    });

    it('say 416 and their length for a part that is not there', async () => {
      const response = await get(`/${archiveFile}`, { headers: { range: 'bytes=16-' } });
      assert.equal(response.status, 416);
      assert.equal(response.headers.get('content-range'), 'bytes */16');
      assert.equal(await response.text(), '');
    });

    it('come whole when the part was begun on another file', async () => {
      const headers = { range: 'bytes=4-6', 'if-range': '"of another file"' };
      const response = await get(`/${archiveFile}`, { headers });
      assert.equal(response.status, 200);
      assert.equal(await response.text(), archiveBytes);
    });

    it('have another ETag once they were repaired', async () => {
      const before = await get(`/${archiveFile}`, { method: 'HEAD' });
      fs.utimesSync(dir.join(archiveFile), 1_800_000_000, 1_800_000_000);
      const later = await get(`/${archiveFile}`, { method: 'HEAD' });
      assert.notEqual(later.headers.get('etag'), before.headers.get('etag'));
    });

    it('may be empty', async () => {
      const file = `targets/${'b'.repeat(64)}.empty`;
      fs.writeFileSync(dir.join(file), '');
      const response = await get(`/${file}`);
      assert.equal(response.status, 200);
      assert.equal(response.headers.get('content-length'), '0');
      assert.equal(await response.text(), '');
      assert.equal((await get(`/${file}`, { headers: { range: 'bytes=0-' } })).status, 416);
    });

    it('survive a client that goes away half-way', async () => {
      const file = `targets/${'c'.repeat(64)}.big`;
      fs.writeFileSync(dir.join(file), Buffer.alloc(8_000_000, 0x61));
      const controller = new AbortController();
      const response = await get(`/${file}`, { signal: controller.signal });
      await response.body?.getReader().read();
      controller.abort();
      const whole = await get(`/${file}`);
      assert.equal((await whole.arrayBuffer()).byteLength, 8_000_000);
    });
  });

  describe('the next root', () => {
    it('is absent for a few seconds only, and there as soon as it is written', async () => {
      const absent = await get('/metadata/2.root.json');
      assert.equal(absent.status, 404);
      assert.equal(absent.headers.get('cache-control'), 'public, max-age=5');
      fs.writeFileSync(dir.join('metadata/2.root.json'), roleBytes('root', { version: 2 }));
      const present = await get('/metadata/2.root.json');
      assert.equal(present.status, 200);
      assert.equal(present.headers.get('cache-control'), immutable);
    });

    it('is the only absence that a cache may keep', async () => {
      const response = await get(`/targets/dns-edge/${'d'.repeat(64)}.stable.tar.br`);
      assert.equal(response.status, 404);
      assert.equal(response.headers.get('cache-control'), 'no-store');
    });
  });

  describe('paths', () => {
    const targets = [
      '/metadata/../.lock',
      '/metadata/%2e%2e/.lock',
      '/metadata/%2e%2e%2f.lock',
      '/.lock',
      '//metadata/timestamp.json',
      '/metadata//timestamp.json',
      '/../../../../etc/passwd',
      '/metadata/..%5c..%5cetc%5cpasswd',
      '/metadata/1.root.json%00',
      'http://evil.example/../.lock',
      'http://evil.example/metadata/%2e%2e/.lock',
      '/metadata',
      '/targets/dns-edge',
      '/',
    ];
    for (const target of targets) {
      it(`finds nothing under ${target}`, async () => {
        const answer = await rawGet(server.url, target);
        assert.equal(answer.status, 404);
        assert.equal(answer.body, 'not found\n');
      });
    }

    it('answers the absolute form', async () => {
      const answer = await rawGet(server.url, `${server.url}/metadata/1.targets.json`);
      assert.equal(answer.status, 200);
      assert.equal(answer.body, fs.readFileSync(dir.join('metadata/1.targets.json'), 'utf8'));
    });

    it('follows a link inside the repository and none that leaves it', async () => {
      using outside = tempDir();
      fs.writeFileSync(outside.join('secret'), 'secret');
      fs.mkdirSync(outside.join('metadata'));
      fs.writeFileSync(outside.join('metadata/9.x.json'), 'secret');
      fs.symlinkSync('1.targets.json', dir.join('metadata/9.inside.json'));
      fs.symlinkSync(outside.join('secret'), dir.join('metadata/9.outside.json'));
      fs.symlinkSync('../.lock', dir.join('metadata/9.lock-file.json'));
      fs.symlinkSync('loop', dir.join('metadata/9.dangling.json'));
      fs.symlinkSync('9.loop.json', dir.join('metadata/9.loop.json'));
      fs.symlinkSync(outside.path, dir.join('targets/outside'));
      fs.writeFileSync(outside.join(`${archiveDigestOf('e')}.x`), 'secret');
      assert.equal((await get('/metadata/9.inside.json')).status, 200);
      for (const path of [
        '/metadata/9.outside.json',
        '/metadata/9.lock-file.json',
        '/metadata/9.dangling.json',
        '/metadata/9.loop.json',
        `/targets/outside/${archiveDigestOf('e')}.x`,
      ]) {
        assert.equal((await get(path)).status, 404, path);
      }
    });

    it('serves regular files only, and does not wait for a FIFO', async () => {
      fs.mkdirSync(dir.join('metadata/8.dir.json'));
      spawnSync('mkfifo', [dir.join('metadata/8.fifo.json')]);
      assert.ok(fs.statSync(dir.join('metadata/8.fifo.json')).isFIFO());
      assert.equal((await get('/metadata/8.dir.json')).status, 404);
      assert.equal((await get('/metadata/8.fifo.json')).status, 404);
    });
  });

  describe('refusals', () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      it(`allows GET and HEAD, not ${method}`, async () => {
        const text = `${method} /metadata/timestamp.json HTTP/1.1\r\nHost: test\r\n\r\n`;
        const answer = await rawRequest(server.url, text);
        assert.equal(answer.status, 405);
        assert.equal(answer.headers.get('allow'), 'GET, HEAD');
        assert.equal(answer.headers.get('connection'), 'close');
      });
    }

    it('reads no body, whatever its type', async () => {
      const post = await get('/metadata/timestamp.json', { method: 'POST', body: '{"__proto__":1}' });
      assert.equal(post.status, 405);
      const head = 'GET /metadata/timestamp.json HTTP/1.1\r\nHost: test\r\n';
      for (const body of ['Content-Length: 2\r\n\r\n{}', 'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n']) {
        const answer = await rawRequest(server.url, head + body);
        assert.equal(answer.status, 413);
      }
    });

    it('takes an address of up to 2 kB', async () => {
      const fits = await rawGet(server.url, `/metadata/timestamp.json?${'x'.repeat(2000)}`);
      assert.equal(fits.status, 200);
      const tooLong = await rawGet(server.url, `/metadata/timestamp.json?${'x'.repeat(2048)}`);
      assert.equal(tooLong.status, 414);
    });

    it('takes headers of up to 8 kB', async () => {
      const head = 'GET /metadata/timestamp.json HTTP/1.1\r\nHost: test\r\n';
      const answer = await rawRequest(server.url, `${head}X-Long: ${'x'.repeat(9000)}\r\n\r\n`);
      assert.equal(answer.status, 431);
    });

    it('answers nonsense with 400 and goes on', async () => {
      assert.equal((await rawRequest(server.url, 'nonsense\r\n\r\n')).status, 400);
      assert.equal((await get('/metadata/timestamp.json')).status, 200);
    });
  });
});

describe('slow clients', () => {
  // In each, the other limits are too long to be what ends it.
  it('are cut off when their headers never end', async () => {
    await using site = await limited({
      headersTimeoutMs: 50,
      requestTimeoutMs: 60_000,
      idleTimeoutMs: 60_000,
    });
    const answer = await rawRequest(site.url, 'GET /metadata/timestamp.json HTTP/1.1\r\nHost:');
    assert.equal(answer.status, 408);
  });

  it('are cut off when nothing moves on their connection', async () => {
    await using site = await limited({
      headersTimeoutMs: 60_000,
      requestTimeoutMs: 60_000,
      idleTimeoutMs: 100,
    });
    assert.equal((await rawRequest(site.url, '')).status, 0);
  });

  it('hold no file open by reading nothing of it', async () => {
    // Long enough that a busy machine looks at least once while the file is open.
    await using site = await limited({ idleTimeoutMs: 1000 });
    const client = connect(site.port, '127.0.0.1');
    client.on('error', () => undefined);
    client.pause().write(`GET /${site.bigFile} HTTP/1.1\r\nHost: test\r\n\r\n`);
    await until(() => isOpenHere(site.bigPath));
    await until(() => !isOpenHere(site.bigPath));
    client.destroy();
  });

  it('are cut off when their file is cut short while they read it, and not left waiting', async () => {
    await using site = await limited({});
    const response = await fetch(`${site.url}/${site.bigFile}`, { signal: AbortSignal.timeout(60_000) });
    fs.truncateSync(site.bigPath, 1000);
    await assert.rejects(response.arrayBuffer(), (error: Error) => error.name !== 'TimeoutError');
  });
});

describe('many clients', () => {
  it('are turned away beyond the greatest number of connections', async () => {
    await using site = await limited({ maxConnections: 2 });
    const held = [1, 2].map(() => connect(site.port, '127.0.0.1'));
    for (const one of held) {
      one.write('GET /metadata/timestamp.json HTTP/1.1\r\nHost: test\r\n\r\n');
      await once(one, 'data');
    }
    assert.equal((await rawGet(site.url, '/metadata/timestamp.json')).status, 0);
    for (const one of held) one.destroy();
    await until(async () => (await rawGet(site.url, '/metadata/timestamp.json')).status === 200);
  });
});

/** A server of a repository with one big file, under these limits. */
async function limited(limits: Partial<ServerLimits>) {
  const dir = tempDir();
  writeRepository(dir.path);
  const bigFile = `targets/${'c'.repeat(64)}.big`;
  fs.writeFileSync(dir.join(bigFile), Buffer.alloc(30_000_000, 0x61));
  const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0, limits });
  return {
    url: server.url,
    port: Number(new URL(server.url).port),
    bigFile,
    bigPath: dir.join(bigFile),
    [Symbol.asyncDispose]: async () => {
      await server.close();
      dir[Symbol.dispose]();
    },
  };
}

/** The server runs in this process. */
function isOpenHere(path: string): boolean {
  const links = fs.readdirSync('/proc/self/fd').map((one) => `/proc/self/fd/${one}`);
  return links.some((link) => fs.existsSync(link) && fs.readlinkSync(link) === path);
}

describe('start and end', () => {
  const codeOf = async (promise: Promise<unknown>): Promise<string> => {
    const error = await promise.then(
      () => undefined,
      (thrown: unknown) => thrown,
    );
    assert.ok(isWritError(error));
    return (error as WritError).code;
  };

  it('refuses a directory that is no repository', async () => {
    using dir = tempDir();
    assert.equal(await codeOf(startServer({ repository: dir.path, host: '127.0.0.1', port: 0 })), 'USAGE');
    const missing = startServer({ repository: dir.join('none'), host: '127.0.0.1', port: 0 });
    assert.equal(await codeOf(missing), 'USAGE');
  });

  it('says LISTEN_FAILED for an address that is taken or not ours', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { readonly port: number };
    const taken = startServer({ repository: dir.path, host: '127.0.0.1', port });
    assert.equal(await codeOf(taken), 'LISTEN_FAILED');
    other.close();
    const foreign = startServer({ repository: dir.path, host: '192.0.2.1', port: 0 });
    assert.equal(await codeOf(foreign), 'LISTEN_FAILED');
  });

  it('does not wait for a client that keeps its connection for a next request', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const file = `targets/${'c'.repeat(64)}.big`;
    fs.writeFileSync(dir.join(file), Buffer.alloc(30_000_000, 0x61));
    const limits = { closeDeadlineMs: 600_000, keepAliveTimeoutMs: 600_000 };
    const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0, limits });
    const reading = await fetch(`${server.url}/${file}`);
    const closed = server.close();
    assert.equal((await reading.arrayBuffer()).byteLength, 30_000_000);
    await closed;
  });

  it('does not wait for a client that has sent half a request', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const limits = { closeDeadlineMs: 600_000, headersTimeoutMs: 300_000, requestTimeoutMs: 600_000 };
    const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0, limits });
    const client = await hostileClient(server.url, 'GET /metadata/timestamp.json HTTP/1.1\r\nHost:');
    // It is connected on both sides when another one has its answer.
    assert.equal((await rawGet(server.url, '/healthz')).status, 200);
    const late = AbortSignal.timeout(60_000);
    const waited = once(late, 'abort').then(() => 'waited');
    assert.equal(await Promise.race([server.close().then(() => 'closed'), waited]), 'closed');
    client.destroy();
  });

  it('finishes what is under way, takes nothing new, and cuts off who does not read', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const file = `targets/${'c'.repeat(64)}.big`;
    fs.writeFileSync(dir.join(file), Buffer.alloc(16_000_000, 0x61));
    const clock = fakeClock();
    const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0, clock });
    const reading = await fetch(`${server.url}/${file}`);
    const stuck = await fetch(`${server.url}/${file}`);
    const closed = server.close();
    const whole = await reading.arrayBuffer();
    assert.equal(whole.byteLength, 16_000_000);
    await assert.rejects(fetch(`${server.url}/metadata/timestamp.json`));
    await clock.advance(30_000);
    await closed;
    await assert.rejects(stuck.arrayBuffer());
  });
});

function archiveDigestOf(letter: string): string {
  return letter.repeat(64);
}

// What the server says of the files that it has: bytes, caching, conditions, parts.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { type RunningServer, startServer } from '../../../src/server/server.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
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

    it('is 304 without a body for a client with the current bytes', async () => {
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

    it('are 304 for a client with the current bytes', async () => {
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

    it('return 416 and their length for a range beyond their end', async () => {
      const response = await get(`/${archiveFile}`, { headers: { range: 'bytes=16-' } });
      assert.equal(response.status, 416);
      assert.equal(response.headers.get('content-range'), 'bytes */16');
      assert.equal(await response.text(), '');
    });

    it('are sent completely when the client has a part of another file', async () => {
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

    it('survive a client that disconnects during the response', async () => {
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
});

// Which file a request means on the wire, and which requests are refused.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { type RunningServer, startServer } from '../../../src/server/server.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { rawGet, rawRequest } from '../../kit/net/raw-request.js';
import { writeRepository } from '../../kit/repository/unsigned-repository.js';

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

    it('answers CONNECT as any other method, and puts nothing into an answer before it', async () => {
      const text = 'CONNECT test:443 HTTP/1.1\r\nHost: test:443\r\n\r\n';
      const answer = await rawRequest(server.url, text);
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.get('allow'), 'GET, HEAD');
      assert.equal(answer.headers.get('connection'), 'close');
      const first = 'GET /metadata/timestamp.json HTTP/1.1\r\nHost: test\r\n\r\n';
      const before = await rawRequest(server.url, `${first}${text}`);
      assert.equal(before.status, 200);
      assert.equal(typeof JSON.parse(before.body.split('HTTP/1.1')[0] ?? ''), 'object');
      assert.equal((await get('/metadata/timestamp.json')).status, 200);
    });

    it('takes up to 64 headers, so that none hides behind those that are read', async () => {
      const head = 'GET /metadata/timestamp.json HTTP/1.1\r\nHost: test\r\n';
      const fits = await rawRequest(server.url, `${head}${'X: y\r\n'.repeat(62)}Connection: close\r\n\r\n`);
      assert.equal(fits.status, 200);
      for (const count of [64, 65, 200]) {
        const text = `${head}${'X: y\r\n'.repeat(count)}Content-Length: 2\r\n\r\n{}`;
        assert.equal((await rawRequest(server.url, text)).status, 431);
      }
    });

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

    it('answers a malformed request with 400, and the server continues', async () => {
      assert.equal((await rawRequest(server.url, 'nonsense\r\n\r\n')).status, 400);
      assert.equal((await get('/metadata/timestamp.json')).status, 200);
    });
  });
});

function archiveDigestOf(letter: string): string {
  return letter.repeat(64);
}

// A repository behind a real nginx, and behind `writ serve`: the same requests, answers and secrets.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { digestHex } from '../../../src/core/names.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { startServer } from '../../../src/server/server.js';
import type { TransferStart } from '../../../src/trust/download.js';
import { openRepositoryClient, type RepositoryClient } from '../../../src/trust/repository-client.js';
import { openRepositorySource } from '../../../src/trust/sources/repository-source.js';
import { openTrustStore } from '../../../src/trust/store/trust-store.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { rawGet } from '../../kit/net/raw-request.js';
import { startNginx } from '../../kit/programs/nginx.js';
import { needs } from '../../kit/programs/real-programs.js';
import {
  metadataPath,
  type SampleRepository,
  sampleRepository,
} from '../../kit/repository/sample-repository.js';

interface Served {
  readonly url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/** The block of docs/server.md, so that the test covers the text that users copy. */
function documentedServerBlock(repository: string): (listen: string) => string {
  const page = fs.readFileSync(
    join(import.meta.dirname, '..', '..', '..', '..', 'docs', 'server.md'),
    'utf8',
  );
  const [, block = ''] = /```nginx\n([\s\S]*?)```/.exec(page) ?? [];
  assert.match(block, /^server \{/);
  return (listen) =>
    block.replace('listen 8080;', `listen ${listen};`).replace('root /srv/writ/repo;', `root ${repository};`);
}

async function serveWithNginx(dir: TempDir, repository: string): Promise<Served> {
  fs.mkdirSync(dir.join('nginx'));
  return startNginx(dir.join('nginx'), documentedServerBlock(repository));
}

async function serveWithWrit(_dir: TempDir, repository: string): Promise<Served> {
  const server = await startServer({ repository, host: '127.0.0.1', port: 0 });
  return { url: server.url, [Symbol.asyncDispose]: () => server.close() };
}

function openClient(dir: TempDir, url: string, repository: SampleRepository): RepositoryClient {
  const store = openTrustStore({
    directory: dir.join('trust'),
    bootstrapRoot: repository.rootPath,
    fs: createDurableFs(),
  });
  const source = openRepositorySource(url, { clock: systemClock, version: '0.0.0' });
  return openRepositoryClient({ source, store, clock: systemClock });
}

type Begun = Parameters<TransferStart['onBegin']>[0];

/** Deterministic text that compresses like a real zone. */
function zone(names: number): string {
  const lines = Array.from({ length: names }, (_, index) => {
    const digest = createHash('sha256').update(String(index)).digest('hex');
    return `${digest.slice(0, 20)}.example.com CNAME .\n`;
  });
  return lines.join('');
}

const servers = [
  { name: 'nginx', serve: serveWithNginx, options: needs('nginx', 'nginx-light') },
  { name: 'writ serve', serve: serveWithWrit, options: {} },
] as const;

for (const { name, serve, options } of servers) {
  describe(`a repository behind ${name}`, { ...options, ...longCase }, () => {
    it('is refreshed, fetched and resumed by the client, with two requests when nothing is new', async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir, { clock: systemClock });
      await repository.publish({ 'block.rpz': zone(5000) });
      await using server = await serve(dir, repository.directory);
      const client = openClient(dir, server.url, repository);
      assert.equal((await client.refresh()).changed, true);
      const again = await client.refresh();
      assert.deepEqual([again.changed, again.requests], [false, 2]);

      const target = await client.target('dns-edge', 'stable');
      assert.ok(target);
      const digest = createHash('sha256');
      let start = Buffer.alloc(0);
      for await (const chunk of client.streamTarget(target)) {
        digest.update(chunk);
        start = Buffer.concat([start, chunk]);
      }
      assert.equal(digest.digest('hex'), digestHex(target.digest));
      const rest: Buffer[] = [];
      const begun: Begun[] = [];
      await client.download(target, async (open, signal) => {
        const onBegin = (one: Begun): void => void begun.push(one);
        for await (const _ of open({ offset: 0, seen: undefined, onBegin }, signal)) break;
        const { seen } = begun[0] ?? {};
        for await (const chunk of open({ offset: 100, seen, onBegin }, signal)) rest.push(chunk);
        const other = seen && { ...seen, etag: '"of-another-version"' };
        for await (const _ of open({ offset: 100, seen: other, onBegin }, signal)) break;
      });
      assert.deepEqual(Buffer.concat(rest), start.subarray(100));
      // A request with the strong ETag of the response continues; one with another ETag gets the whole file.
      assert.match(begun[0]?.seen?.etag ?? '', /^"[^"]+"$/);
      assert.deepEqual(
        begun.map(({ offset }) => offset),
        [0, 100, 0],
      );
      await client.close();
    });

    it('shows each of two re-signings of equal size within one second', async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir, { clock: systemClock });
      await repository.publish({ a: 'a' });
      await using server = await serve(dir, repository.directory);
      const client = openClient(dir, server.url, repository);
      await client.refresh();
      const live = metadataPath(repository, 'timestamp.json');
      const sizes = new Set<number>();
      for (const version of [3, 4, 5]) {
        await repository.refresh(['timestamp']);
        sizes.add(fs.statSync(live).size);
        assert.equal((await client.refresh()).roles.timestamp.version, version);
      }
      assert.equal(sizes.size, 1);
      await client.close();
    });

    it('sets cache headers, and compresses nothing', async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir, { clock: systemClock });
      const published = await repository.publish({ a: 'a' });
      assert.ok(published.kind === 'live');
      await using server = await serve(dir, repository.directory);
      const archive = `targets/dns-edge/${digestHex(published.archiveDigest)}.stable.tar.br`;
      const headers = { 'accept-encoding': 'gzip, br' };
      for (const [path, control, type] of [
        ['metadata/timestamp.json', 'no-cache', 'application/json'],
        ['metadata/1.root.json', 'public, max-age=31536000, immutable', 'application/json'],
        [archive, 'public, max-age=31536000, immutable', 'application/octet-stream'],
      ] as const) {
        const response = await fetch(`${server.url}/${path}`, { headers });
        assert.equal(response.status, 200, path);
        assert.equal(response.headers.get('cache-control'), control, path);
        assert.equal(response.headers.get('content-type'), type, path);
        assert.equal(response.headers.get('content-encoding'), null, path);
        assert.equal(response.headers.get('x-content-type-options'), 'nosniff', path);
        const bytes = Buffer.from(await response.arrayBuffer());
        assert.deepEqual(bytes, fs.readFileSync(join(repository.directory, path)), path);
      }
    });

    it('hides files that are not part of it', async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir, { clock: systemClock });
      fs.writeFileSync(join(repository.directory, 'metadata/.writ-tmp-0'), 'half a timestamp');
      await using server = await serve(dir, repository.directory);
      for (const path of [
        '/.lock',
        '/metadata/',
        '/metadata/.writ-tmp-0',
        '/metadata/%2e%2e/.lock',
        '/targets/',
        '/metadata/2.root.json',
      ]) {
        assert.equal((await rawGet(server.url, path)).status, 404, path);
      }
    });
  });
}

describe('the ETag of nginx', { ...needs('nginx', 'nginx-light'), ...longCase }, () => {
  it('is the same after a change of equal size within one second, so the publisher advances the file time', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    await using server = await serveWithNginx(dir, repository.directory);
    const live = metadataPath(repository, 'timestamp.json');
    const { mtime } = fs.statSync(live);
    const etag = (await fetch(`${server.url}/metadata/timestamp.json`)).headers.get('etag') ?? '';
    await repository.refresh(['timestamp']);
    const headers = { 'if-none-match': etag };
    assert.equal((await fetch(`${server.url}/metadata/timestamp.json`, { headers })).status, 200);
    fs.utimesSync(live, mtime, mtime);
    assert.equal((await fetch(`${server.url}/metadata/timestamp.json`, { headers })).status, 304);
  });
});

// Clients that hold what they can by being slow, or many: each is ended by the bound that is meant for it.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import type { ServerLimits } from '../../../src/platform/serve/server-limits.js';
import { startServer } from '../../../src/server/server.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { getRequest, hostileClient, hostileClients } from '../../kit/net/hostile-client.js';
import { rawGet, rawRequest } from '../../kit/net/raw-request.js';
import { writeRepository } from '../../kit/repository/unsigned-repository.js';

describe('slow clients', () => {
  // In each, the other limits are too long to be what ends it.
  it('are cut off when their headers never end', async () => {
    await using site = await limited({
      headersTimeoutMs: 50,
      requestTimeoutMs: 60_000,
      // Less than the 60 s of Node, which would answer 408 as well.
      idleTimeoutMs: 50_000,
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

  it('hold no file open by reading nothing of it', longCase, async () => {
    await using site = await limited({ idleTimeoutMs: 1000 });
    const client = connect(site.port, '127.0.0.1');
    client.on('error', () => undefined);
    client.write(`GET /${site.bigFile} HTTP/1.1\r\nHost: test\r\n\r\n`);
    // Bytes of it come from an open file, and most of it is still to come.
    await once(client, 'data');
    client.pause();
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
  it('with idle connections lose them to clients that send a request', async () => {
    await using site = await limited({ maxConnections: 2 });
    const idle = connect(site.port, '127.0.0.1');
    idle.on('error', () => undefined).write(getRequest('metadata/timestamp.json'));
    await once(idle, 'data');
    const silent = await hostileClient(site.url, 'GET /metadata/timestamp.json HTTP/1.1\r\nHost:');
    assert.equal((await rawGet(site.url, '/metadata/timestamp.json')).status, 200);
    await until(() => idle.closed);
    assert.equal(silent.closed, false);
    silent.destroy();
  });

  it('are refused where every allowed connection has an active response', async () => {
    await using site = await limited({ maxConnections: 2 });
    const held = await hostileClients(site.url, getRequest(site.bigFile), 2);
    for (const one of held) {
      await once(one, 'data');
      one.pause();
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

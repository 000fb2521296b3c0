// The life of the server: what it does not start with, and whom it waits for at its end.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { createServer } from 'node:net';
import { describe, it } from 'node:test';
import { isWritError, type WritError } from '../../../src/core/errors.js';
import { startServer } from '../../../src/server/server.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { getRequest, hostileClient } from '../../kit/net/hostile-client.js';
import { rawGet } from '../../kit/net/raw-request.js';
import { writeRepository } from '../../kit/repository/unsigned-repository.js';

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

  it('fails with LISTEN_FAILED for an address that is in use or not of this machine', async () => {
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

  it('does not wait for a client that keeps its connection for a next request', longCase, async () => {
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

  it('answers a further request after an active response with the notice that the server is stopping', async () => {
    using dir = tempDir();
    writeRepository(dir.path);
    const file = `targets/${'c'.repeat(64)}.big`;
    fs.writeFileSync(dir.join(file), Buffer.alloc(16_000_000, 0x61));
    const server = await startServer({ repository: dir.path, host: '127.0.0.1', port: 0 });
    const client = await hostileClient(server.url, getRequest(file));
    await once(client, 'readable');
    const closed = server.close();
    client.write(getRequest('metadata/timestamp.json'));
    let end = '';
    client.on('data', (chunk: Buffer) => {
      end = (end + chunk.toString('latin1')).slice(-500);
    });
    await closed;
    await until(() => client.closed);
    assert.match(
      end,
      /a{20}HTTP\/1\.1 503 [\s\S]*\r\nConnection: close\r\n[\s\S]*\r\n\r\nthe server is stopping\n$/,
    );
  });

  it(
    'finishes active responses, accepts no new request, and disconnects a client that does not read',
    longCase,
    async () => {
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
    },
  );
});

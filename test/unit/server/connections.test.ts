// The bounds on connections, on the wire: what is answered, in which order, and what is closed.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import * as fs from 'node:fs';
import type * as http from 'node:http';
import { type AddressInfo, BlockList } from 'node:net';
import { describe, it } from 'node:test';
import { createListener } from '../../../src/platform/serve/listener.js';
import type { RefusedConnection } from '../../../src/platform/serve/refused-connection.js';
import { type ServerLimits, serverLimits } from '../../../src/platform/serve/server-limits.js';
import { startServer } from '../../../src/server/server.js';
import { logLines } from '../../kit/assert/log-lines.js';
import { until } from '../../kit/assert/until.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { getRequest, hostileClient, hostileClients } from '../../kit/net/hostile-client.js';
import { rawGet, rawRequest } from '../../kit/net/raw-request.js';
import { archiveBytes, archiveFile, writeRepository } from '../../kit/repository/unsigned-repository.js';

/** Of an answer behind the first one; its status is kept by a split. */
const answerHead = /HTTP\/1\.1 (\d+) [\s\S]*?\r\n\r\n/;
const lastRequest = (path: string): string =>
  getRequest(path).replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n');

async function site(limits: Partial<ServerLimits> = {}) {
  const dir = tempDir();
  writeRepository(dir.path);
  const log = logLines();
  const server = await startServer({
    repository: dir.path,
    host: '127.0.0.1',
    port: 0,
    limits,
    log: log.log,
  });
  return {
    dir,
    log,
    url: server.url,
    [Symbol.asyncDispose]: async () => {
      await server.close();
      dir[Symbol.dispose]();
    },
  };
}

/** A listener alone, for whom loopback is an address as any other. */
async function bareListener(limits: Partial<ServerLimits>, handler: http.RequestListener) {
  const refused: RefusedConnection[] = [];
  const listener = createListener({
    limits: serverLimits(limits, 10_000),
    uncounted: new BlockList(),
    onRefused: (one) => refused.push(one),
  });
  const server = listener.createServer(handler);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    refused,
    listener,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      listener.destroyConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('a client that reads nothing of its answer', () => {
  it('is ended after one idle time, by the clock of the server', async () => {
    await using here = await bareListener({}, (_request, response) => response.end(Buffer.alloc(30_000_000)));
    const clock = fakeClock();
    const over = new AbortController();
    const watching = here.listener.watchPace(clock, over.signal);
    const client = await hostileClient(here.url, getRequest('a'));
    await once(client, 'data');
    client.pause();
    await clock.advance(55_000);
    assert.deepEqual(here.refused, []);
    await clock.advance(5000);
    assert.deepEqual(here.refused, [{ reason: 'slow', remote: '127.0.0.1' }]);
    over.abort();
    await watching;
    client.destroy();
  });

  it('is not held to time in which the machine slept', async () => {
    await using here = await bareListener({}, (_request, response) => response.end(Buffer.alloc(30_000_000)));
    const clock = fakeClock();
    const over = new AbortController();
    let monotonicMs = 0;
    const asleep = { ...clock, monotonicMs: () => clock.monotonicMs() + monotonicMs };
    const watching = here.listener.watchPace(asleep, over.signal);
    const client = await hostileClient(here.url, getRequest('a'));
    await once(client, 'data');
    client.pause();
    monotonicMs = 3_600_000;
    await clock.advance(50_000);
    assert.deepEqual(here.refused, []);
    over.abort();
    await watching;
    client.destroy();
  });
});

describe('requests that do not wait for an answer', () => {
  it('are answered in their order, each completely', async () => {
    await using here = await site();
    const text = getRequest(archiveFile) + getRequest('metadata/2.root.json') + lastRequest(archiveFile);
    const answer = await rawRequest(here.url, text);
    const bodies = answer.body.split(answerHead);
    assert.deepEqual(bodies, [archiveBytes, '404', 'not found\n', '200', archiveBytes]);
    await until(() => here.log.named('request').length === 3);
    assert.deepEqual(
      here.log.named('request').map(({ status, complete }) => [status, complete]),
      [
        [200, true],
        [404, true],
        [200, true],
      ],
    );
  });

  it('are begun one after the other: none before the answer to the one before is out', async () => {
    const begun: (() => void)[] = [];
    await using here = await bareListener({}, (_request, response) => begun.push(() => response.end('x')));
    const answer = rawRequest(here.url, getRequest('a') + getRequest('b') + lastRequest('c'));
    for (const count of [1, 2, 3]) {
      await until(() => begun.length === count);
      begun.at(-1)?.();
    }
    assert.equal((await answer).body.split('HTTP/1.1 200').length, 3);
  });

  it('close their own connection only when there are too many', async () => {
    await using here = await site({ maxWaitingRequests: 2 });
    const fits = await rawRequest(here.url, getRequest(archiveFile).repeat(2) + lastRequest(archiveFile));
    assert.equal(fits.body.split(archiveBytes).length, 4);
    assert.equal(here.log.named('refused a connection').length, 0);
    await rawRequest(here.url, getRequest(archiveFile).repeat(400));
    const [line, ...more] = here.log.named('refused a connection');
    assert.equal(more.length, 0);
    assert.deepEqual([line?.['reason'], line?.['remote']], ['pipelining', '127.0.0.1']);
    assert.equal((await rawGet(here.url, `/${archiveFile}`)).status, 200);
    const metrics = await (await fetch(`${here.url}/metrics`)).text();
    assert.match(metrics, /^writ_server_refused_connections_total\{reason="pipelining"\} 1$/m);
    assert.match(metrics, /^writ_server_refused_connections_total\{reason="address"\} 0$/m);
  });

  it('count no more once they are begun', async () => {
    const begun: (() => void)[] = [];
    await using here = await bareListener({ maxWaitingRequests: 2 }, (_request, response) =>
      begun.push(() => response.end('x')),
    );
    const client = await hostileClient(here.url, getRequest('a').repeat(3));
    client.resume();
    // There are always two that wait, and never more.
    for (let count = 1; count <= 5; count += 1) {
      await until(() => begun.length === count || here.refused.length > 0);
      begun.at(-1)?.();
      await until(() => begun.length === count + 1 || here.refused.length > 0);
      client.write(getRequest('a'));
    }
    assert.deepEqual(here.refused, []);
    client.destroy();
  });

  it('are not begun any more once their connection is gone', async () => {
    let begun = 0;
    await using here = await bareListener({}, (request) => {
      begun += 1;
      request.socket.destroy();
    });
    await rawRequest(here.url, getRequest('a').repeat(4));
    await rawRequest(here.url, getRequest('b'));
    assert.equal(begun, 2);
  });

  it('get no answer of Node in the midst of another, whatever they expect', async () => {
    await using here = await site();
    const expecting = (what: string): string =>
      `GET /${archiveFile} HTTP/1.1\r\nHost: test\r\nExpect: ${what}\r\n\r\n`;
    // Behind a body that nobody asked for, Node keeps no connection.
    const continued = await rawRequest(here.url, getRequest(archiveFile) + expecting('100-continue'));
    assert.deepEqual(continued.body.split(answerHead), [archiveBytes, '200', archiveBytes]);
    const expected = await rawRequest(here.url, expecting('a miracle') + lastRequest(archiveFile));
    assert.deepEqual(expected.body.split(answerHead), [archiveBytes, '200', archiveBytes]);
  });

  it('that are none end the connection without a word amid an answer, for it would be taken for bytes of the file', async () => {
    await using here = await site();
    const file = `targets/${'c'.repeat(64)}.big`;
    fs.writeFileSync(here.dir.join(file), Buffer.alloc(30_000_000, 0x61));
    const atOnce = await rawRequest(here.url, `${getRequest(file)}nonsense\r\n\r\n`);
    assert.notEqual(atOnce.status, 400);
    const client = await hostileClient(here.url, getRequest(file));
    const chunks: Buffer[] = [];
    client.on('data', (chunk: Buffer) => chunks.push(chunk));
    await until(() => chunks.length > 0);
    client.write('nonsense\r\n\r\n');
    await until(() => client.closed);
    assert.equal(Buffer.concat(chunks).toString('latin1').split('HTTP/').length, 2);
    assert.equal((await rawRequest(here.url, 'nonsense\r\n\r\n')).status, 400);
  });
});

describe('an address with too many connections', () => {
  it('gets a refusal at the next one, and is served again when one is closed', async () => {
    let begun = 0;
    await using here = await bareListener({ maxConnectionsPerAddress: 2 }, (_request, response) => {
      begun += 1;
      response.end('x');
    });
    const [first, second] = await hostileClients(here.url, '', 2);
    const answer = await rawRequest(here.url, '');
    assert.equal(answer.status, 429);
    assert.deepEqual(
      ['retry-after', 'connection'].map((name) => answer.headers.get(name)),
      ['10', 'close'],
    );
    assert.deepEqual(here.refused, [{ reason: 'address', remote: '127.0.0.1' }]);
    await rawGet(here.url, '/');
    assert.equal(begun, 0, 'what a refused connection asks is read by nobody');
    first?.destroy();
    await until(async () => (await rawGet(here.url, '/')).status === 200);
    second?.destroy();
  });

  it('is let in all the same where it is loopback, or a proxy', async () => {
    await using here = await site({ maxConnectionsPerAddress: 1 });
    const held = await hostileClients(here.url, '', 5);
    assert.equal((await rawGet(here.url, `/${archiveFile}`)).status, 200);
    for (const socket of held) socket.destroy();
  });

  it('is logged when the limit of the complete server is reached', async () => {
    await using here = await site({ maxConnections: 1 });
    const file = `targets/${'c'.repeat(64)}.big`;
    fs.writeFileSync(here.dir.join(file), Buffer.alloc(30_000_000, 0x61));
    const held = await hostileClient(here.url, getRequest(file));
    await once(held, 'data');
    held.pause();
    assert.equal((await rawGet(here.url, '/healthz')).status, 0);
    const reasons = (): unknown[] => here.log.named('refused a connection').map(({ reason }) => reason);
    assert.deepEqual(reasons(), ['connections']);
    held.destroy();
    await until(async () => (await rawGet(here.url, '/healthz')).status === 200);
    await until(async () => {
      await hostileClient(here.url, '');
      assert.equal((await rawGet(here.url, '/healthz')).status, 200);
      return reasons().includes('displaced');
    });
  });
});

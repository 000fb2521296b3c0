import assert from 'node:assert/strict';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { request } from 'node:http';
import { createConnection, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import {
  listenForMetrics,
  type MetricsListenerOptions,
} from '../../../../src/platform/net/metrics-listener.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { until } from '../../../kit/assert/until.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

interface Answer {
  readonly status: number | undefined;
  readonly text: string;
  readonly contentType: string | undefined;
}

function ask(at: { socketPath: string } | { port: number }, path: string, method = 'GET'): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', ...at, path, method, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      const { statusCode: status, headers } = response;
      response.on('end', () => resolve({ status, text, contentType: headers['content-type'] }));
    });
    asked.on('error', reject);
    asked.end();
  });
}

/** Opens connections that send these texts in turn, and read only if a test does. */
async function hold(
  to: { readonly socketPath: string } | { readonly port: number },
  texts: readonly string[],
  count: number,
): Promise<Socket[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, index) => {
      const socket = 'port' in to ? createConnection(to.port, '127.0.0.1') : createConnection(to.socketPath);
      socket.on('error', () => undefined);
      await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
      socket.write(texts[index % texts.length] ?? '');
      return socket;
    }),
  );
}

const durable = createDurableFs();
const page = {
  durable,
  clock: systemClock,
  text: async () => 'writ 1\n',
  contentType: 'text/plain; version=0.0.4',
};
const tcp: MetricsListenerOptions['at'] = { kind: 'tcp', host: '127.0.0.1', port: 0 };

async function listen(options: Partial<MetricsListenerOptions> = {}) {
  const listener = await listenForMetrics({ ...page, at: tcp, ...options });
  return {
    ...listener,
    port: Number(listener.address.split(':').at(-1)),
    [Symbol.asyncDispose]: () => listener.close(),
  };
}

describe('the listener for metrics', () => {
  it('answers at /metrics, and nowhere else', async () => {
    await using listener = await listen();
    assert.deepEqual(await ask(listener, '/metrics'), {
      status: 200,
      text: 'writ 1\n',
      contentType: 'text/plain; version=0.0.4',
    });
    assert.equal((await ask(listener, '/metrics?name=x')).status, 200);
    assert.equal((await ask(listener, '/')).status, 404);
    assert.equal((await ask(listener, '/metrics', 'POST')).status, 405);
  });

  it('answers on a unix socket that only owner and group may use', async () => {
    using dir = tempDir();
    const path = dir.join('metrics.sock');
    await using listener = await listen({ at: { kind: 'unix', path } });
    assert.equal(listener.address, path);
    assert.equal(statSync(path).mode & 0o777, 0o660);
    assert.equal((await ask({ socketPath: path }, '/metrics')).text, 'writ 1\n');
  });

  it('responds with an error if the page cannot be created', async () => {
    await using listener = await listen({ text: () => Promise.reject(new Error('no')) });
    assert.equal((await ask(listener, '/metrics')).status, 500);
  });

  it('ends while a client holds a connection open', async () => {
    using dir = tempDir();
    const path = dir.join('metrics.sock');
    for (const at of [tcp, { kind: 'unix', path } as const]) {
      const listener = await listen({ at });
      const held = createConnection(at.kind === 'unix' ? { path } : { port: listener.port });
      await new Promise((resolve) => held.once('connect', resolve));
      held.on('error', () => undefined);
      const closed = new Promise((resolve) => held.once('close', resolve));
      await listener.close();
      await closed;
    }
  });

  for (const kind of ['tcp', 'unix'] as const) {
    it(`responds while all slots are taken by clients that send nothing, a part of a request, or read nothing (${kind})`, async () => {
      using dir = tempDir();
      const path = dir.join('metrics.sock');
      await using listener = await listen({ at: kind === 'tcp' ? tcp : { kind, path } });
      const to = kind === 'tcp' ? { port: listener.port } : { socketPath: path };
      const held = await hold(
        to,
        ['', 'GET /metrics HTTP/1.1\r\nX: ', 'GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'],
        40,
      );
      assert.equal((await ask(to, '/metrics')).status, 200);
      for (const one of held) one.destroy();
    });

    it(`closes a client that sends its request slowly (${kind})`, async () => {
      using dir = tempDir();
      const path = dir.join('metrics.sock');
      const clock = fakeClock();
      await using listener = await listen({ clock, at: kind === 'tcp' ? tcp : { kind, path } });
      const to = kind === 'tcp' ? { port: listener.port } : { socketPath: path };
      const [dripping] = await hold(to, ['GET /metrics HTTP/1.1\r\nX: '], 1);
      await until(() => clock.sleeping() === 1);
      for (let seconds = 0; seconds < 5; seconds += 1) {
        assert.equal(dripping?.closed, false);
        dripping?.write('x');
        await clock.advance(1000);
      }
      await until(() => dripping?.closed === true);
    });

    it(`closes a client that requests a page and does not read it (${kind})`, async () => {
      using dir = tempDir();
      const path = dir.join('metrics.sock');
      const clock = fakeClock();
      const text = async (): Promise<string> => 'x'.repeat(30_000_000);
      await using listener = await listen({ clock, text, at: kind === 'tcp' ? tcp : { kind, path } });
      const to = kind === 'tcp' ? { port: listener.port } : { socketPath: path };
      const [stuck] = await hold(to, ['GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'], 1);
      await once(stuck as Socket, 'data');
      stuck?.pause();
      await clock.advance(10_000);
      stuck?.resume();
      await until(() => stuck?.closed === true);
      assert.ok((stuck?.bytesRead ?? 0) < 30_000_000);
    });
  }

  it('refuses an address that is taken', async () => {
    await using listener = await listen();
    const at = { kind: 'tcp', host: '127.0.0.1', port: listener.port } as const;
    await rejectsCode('LISTEN_FAILED', listenForMetrics({ ...page, at }));
  });
});

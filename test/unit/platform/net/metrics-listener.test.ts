import assert from 'node:assert/strict';
import { statSync } from 'node:fs';
import { request } from 'node:http';
import { createConnection } from 'node:net';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import {
  listenForMetrics,
  type MetricsListenerOptions,
} from '../../../../src/platform/net/metrics-listener.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
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

const durable = createDurableFs();
const page = { durable, text: async () => 'writ 1\n', contentType: 'text/plain; version=0.0.4' };
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

  it('says that the page could not be made', async () => {
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

  it('refuses an address that is taken', async () => {
    await using listener = await listen();
    const at = { kind: 'tcp', host: '127.0.0.1', port: listener.port } as const;
    await rejectsCode('LISTEN_FAILED', listenForMetrics({ ...page, at }));
  });
});

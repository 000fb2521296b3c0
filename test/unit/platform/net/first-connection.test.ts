// The order and the end of connection attempts, with a fake resolver and real listeners on loopback.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { describe, it, type TestContext } from 'node:test';
import { isSystemError } from '../../../../src/core/errors.js';
import { ConnectError } from '../../../../src/platform/net/connect-failure.js';
import { openFirstConnection } from '../../../../src/platform/net/first-connection.js';
import { until } from '../../../kit/assert/until.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { fullListener } from '../../../kit/net/full-listener.js';

const hostname = 'policy.test';

async function listenAt(context: TestContext, address: string, port: number): Promise<Server> {
  const server = createServer((socket) => socket.on('error', () => undefined));
  server.listen(port, address);
  await once(server, 'listening');
  context.after(() => server.close());
  return server;
}

const portOf = (server: Server): number => (server.address() as AddressInfo).port;

function attempt(addresses: readonly string[], port: number, signal?: AbortSignal) {
  const clock = fakeClock();
  const opening = openFirstConnection({
    ...{ hostname, port, timeoutMs: 10_000, clock, signal },
    lookup: async () => addresses,
  });
  let isOpen = false;
  opening.then(
    () => {
      isOpen = true;
    },
    () => undefined,
  );
  return { clock, opening, opened: () => until(() => isOpen) };
}

async function rejectionOf(opening: Promise<Socket>): Promise<ConnectError> {
  const error = await opening.then(
    () => undefined,
    (cause: unknown) => cause,
  );
  assert.ok(error instanceof ConnectError, String(error));
  return error;
}

describe('a connection to a name', () => {
  it('goes to its second address without delay when the first one refuses', async (context) => {
    const port = portOf(await listenAt(context, '127.0.0.2', 0));
    const { opening, opened } = attempt(['127.0.0.3', '127.0.0.2'], port);
    await opened();
    const socket = await opening;
    assert.equal(socket.remoteAddress, '127.0.0.2');
    socket.destroy();
  });

  it('goes to its second address after 250 ms when the first one does not answer', async (context) => {
    const port = await fullListener(context, '127.0.0.4');
    await listenAt(context, '127.0.0.2', port);
    const { clock, opening, opened } = attempt(['127.0.0.4', '127.0.0.2'], port);
    await until(() => clock.sleeping() === 2);
    await clock.advance(249);
    assert.equal(clock.sleeping(), 2, 'the delay and the first attempt');
    await clock.advance(1);
    await opened();
    const socket = await opening;
    assert.equal(socket.remoteAddress, '127.0.0.2');
    assert.equal(clock.sleeping(), 0, 'no attempt is left');
    socket.destroy();
  });

  it('goes to the first address when the last one does not answer', async (context) => {
    const port = await fullListener(context, '127.0.0.4');
    await listenAt(context, '127.0.0.2', port);
    const socket = await attempt(['127.0.0.2', '127.0.0.4'], port).opening;
    assert.equal(socket.remoteAddress, '127.0.0.2');
    socket.destroy();
  });

  it('keeps an attempt that is slower than the next one begins', async (context) => {
    const drain = new AbortController();
    const port = await fullListener(context, '127.0.0.4', drain.signal);
    const { clock, opening } = attempt(['127.0.0.4', '127.0.0.5'], port);
    await until(() => clock.sleeping() === 2);
    await clock.advance(250);
    // 127.0.0.5 refuses; the first attempt goes on.
    drain.abort();
    const socket = await opening;
    assert.equal(socket.remoteAddress, '127.0.0.4');
    socket.destroy();
  });

  it('fails with each address and its errno, after the time of the slowest attempt', async (context) => {
    const port = await fullListener(context, '127.0.0.4');
    const { clock, opening } = attempt(['127.0.0.4', '127.0.0.5'], port);
    const failing = rejectionOf(opening);
    await until(() => clock.sleeping() === 2);
    await clock.advance(10_000);
    const error = await failing;
    assert.equal(error.message, '127.0.0.4 ETIMEDOUT, 127.0.0.5 ECONNREFUSED');
    assert.equal(error.code, 'ECONNREFUSED');
  });

  it('tries sixteen of a hundred addresses', async (context) => {
    const server = await listenAt(context, '127.0.0.2', 0);
    const many = Array.from({ length: 100 }, (_, index) => `127.0.1.${index}`);
    const error = await rejectionOf(attempt(many, portOf(server)).opening);
    assert.equal(error.message.split(', ').length, 16);
  });

  it('fails by the errno alone where the URL has the address', async (context) => {
    const port = portOf(await listenAt(context, '127.0.0.2', 0));
    const options = { hostname: '127.0.0.3', port, timeoutMs: 1000, clock: fakeClock() };
    const error = await rejectionOf(openFirstConnection(options));
    assert.deepEqual([error.message, error.code], ['ECONNREFUSED', 'ECONNREFUSED']);
  });

  it('fails when the resolver does not answer in time, or knows no address', async () => {
    const clock = fakeClock();
    const options = { hostname, port: 1, timeoutMs: 10_000, clock };
    const silent = openFirstConnection({ ...options, lookup: () => new Promise(() => undefined) });
    const failing = assert.rejects(silent, (error) => isSystemError(error, 'EAI_AGAIN'));
    await until(() => clock.sleeping() === 1);
    await clock.advance(10_000);
    await failing;
    const none = openFirstConnection({ ...options, lookup: async () => [] });
    await assert.rejects(none, (error) => isSystemError(error, 'ENOTFOUND'));
  });

  it('ends all attempts when its caller does', async (context) => {
    const port = await fullListener(context, '127.0.0.4');
    const stop = new AbortController();
    const { clock, opening } = attempt(['127.0.0.4', '127.0.0.4'], port, stop.signal);
    const failing = rejectionOf(opening);
    await until(() => clock.sleeping() === 2);
    stop.abort();
    assert.equal((await failing).code, 'ECANCELED');
    assert.equal(clock.sleeping(), 0);
  });
});

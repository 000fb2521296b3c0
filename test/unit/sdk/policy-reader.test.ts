import assert from 'node:assert/strict';
import { createServer, type Server, type Socket } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { isWritError } from '../../../src/core/errors.js';
import {
  connectPolicy,
  type PolicyConnection,
  type PolicyGeneration,
} from '../../../src/sdk/policy-reader.js';
import type { Answer, Driver } from '../../../src/workers/contract/driver.js';
import { native } from '../../../src/workers/drivers/native.js';
import { throwsCode } from '../../kit/assert/assert-code.js';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { driverContext } from '../../kit/workers/driver-context.js';

const ignore = (): void => undefined;
const codeOf = (reason: unknown): string | undefined => (isWritError(reason) ? reason.code : undefined);
const timeoutMs = 60_000;

async function openDriver(dir: TempDir): Promise<Driver> {
  const driver = native.create({ native: 'access' }, driverContext({ runDirectory: dir.path }));
  await driver.open?.();
  return driver;
}

async function notify(driver: Driver, generation: number, worker = 'w'): Promise<Answer> {
  await until(async () => (await driver.members()).includes(worker));
  return driver.reset(worker, { target: { generation, path: `/g/${generation}` }, timeoutMs });
}

describe('a worker with the library', () => {
  it('confirms what its handler accepts and refuses what it throws at', async () => {
    using dir = tempDir();
    const driver = await openDriver(dir);
    const seen: PolicyGeneration[] = [];
    const policy = connectPolicy({
      socket: dir.join('workers/access.sock'),
      name: 'w',
      onGeneration: (generation) => {
        seen.push(generation);
        if (generation.generation === 2) throw new Error('two is bad');
      },
    });
    const inUse = (): number | undefined => policy.current?.generation;
    assert.equal(inUse(), undefined);
    assert.equal((await notify(driver, 1)).kind, 'confirmed');
    assert.equal(inUse(), 1);
    assert.deepEqual(await notify(driver, 2), { kind: 'refused', text: 'two is bad' });
    assert.equal(inUse(), 1, 'a refused generation is not in use');
    assert.equal((await notify(driver, 1)).kind, 'confirmed');
    assert.deepEqual(
      seen.map(({ generation, path }) => [generation, path]),
      [
        [1, '/g/1'],
        [2, '/g/2'],
        [1, '/g/1'],
      ],
    );
    await policy.close();
    await driver.close?.();
  });

  it('is told what is active when it connects', async () => {
    using dir = tempDir();
    const driver = await openDriver(dir);
    driver.activeChanged?.({ generation: 5, path: '/g/5' });
    const policy = connectPolicy({ socket: dir.join('workers/access.sock'), onGeneration: ignore });
    await until(() => policy.current?.generation === 5);
    await policy.close();
    await driver.close?.();
  });

  it('refuses with a reason that fits the line, however long the error is', async () => {
    using dir = tempDir();
    const driver = await openDriver(dir);
    const policy = connectPolicy({
      socket: dir.join('workers/access.sock'),
      name: 'w',
      onGeneration: () => {
        throw new Error('x'.repeat(100_000));
      },
    });
    const answer = await notify(driver, 1);
    assert.equal(answer.kind, 'refused');
    assert.ok(answer.text.length <= 1024);
    await policy.close();
    await driver.close?.();
  });

  it('finds the bundles of its generation, and only names of bundles', async () => {
    using dir = tempDir();
    const driver = await openDriver(dir);
    const policy = connectPolicy({
      socket: dir.join('workers/access.sock'),
      name: 'w',
      onGeneration: ignore,
    });
    await notify(driver, 3);
    assert.equal(policy.current?.bundle('access'), '/g/3/access');
    for (const name of ['..', '../4/access', '', '/etc']) {
      throwsCode('USAGE', () => policy.current?.bundle(name));
    }
    await policy.close();
    await driver.close?.();
  });

  it('comes back when the agent does, with pauses that grow to a bound, and starts anew after a success', async () => {
    using dir = tempDir();
    const pauses: number[] = [];
    const reasons: Error[] = [];
    let driver: Driver | undefined;
    const policy = connectPolicy({
      socket: dir.join('workers/access.sock'),
      name: 'w',
      onGeneration: ignore,
      onEvent: (event) => {
        if (event.type === 'disconnected') reasons.push(event.reason);
      },
      delays: { firstMs: 100, maxMs: 400 },
      random: () => 0.5,
      sleep: async (delayMs) => {
        pauses.push(delayMs);
        if (pauses.length === 4) driver = await openDriver(dir);
        await setImmediate();
      },
    });
    await until(() => driver !== undefined);
    assert.deepEqual(pauses, [75, 150, 300, 300]);
    assert.ok(reasons.every((reason) => codeOf(reason) === 'AGENT_UNREACHABLE'));
    assert.equal((await notify(driver as Driver, 1)).kind, 'confirmed');
    await driver?.close?.();
    await until(() => pauses.length > 4);
    assert.equal(pauses[4], 75);
    await policy.close();
  });

  it('asks its handler again after a reconnect: the agent may count from 1 anew', async () => {
    using dir = tempDir();
    const handled: number[] = [];
    const policy = connectPolicy({
      socket: dir.join('workers/access.sock'),
      name: 'w',
      onGeneration: ({ generation }) => void handled.push(generation),
      sleep: () => setImmediate(),
    });
    for (const round of [1, 2]) {
      const driver = await openDriver(dir);
      assert.equal((await notify(driver, 1)).kind, 'confirmed');
      assert.deepEqual(handled.length, round);
      await driver.close?.();
    }
    await policy.close();
  });

  it('ends at its signal, and waits for the handler when it is closed', async () => {
    using dir = tempDir();
    const driver = await openDriver(dir);
    const stop = new AbortController();
    let finish = ignore;
    let isDone = false;
    const policy = connectPolicy({
      socket: dir.join('workers/access.sock'),
      name: 'w',
      signal: stop.signal,
      onGeneration: () =>
        new Promise((resolve) => {
          finish = resolve;
        }),
    });
    const notified = notify(driver, 1);
    await until(() => finish !== ignore);
    stop.abort();
    assert.equal((await notified).kind, 'unreachable');
    const closing = policy.close().then(() => {
      isDone = true;
    });
    await setImmediate();
    assert.equal(isDone, false);
    finish();
    await closing;
    await driver.close?.();
  });

  it('refuses a name or a path that cannot be used', () => {
    throwsCode('USAGE', () => connectPolicy({ socket: '/run/a.sock', name: 'a b', onGeneration: ignore }));
    throwsCode('SOCKET_PATH_TOO_LONG', () =>
      connectPolicy({ socket: `/${'s'.repeat(107)}`, name: 'a', onGeneration: ignore }),
    );
  });
});

describe('a worker that meets something that is no agent', () => {
  async function meets(lines: string): Promise<{ reason: Error; handled: number[] }> {
    using dir = tempDir();
    const server: Server = createServer((socket: Socket) => {
      socket.on('error', ignore);
      socket.write(lines);
    });
    await new Promise<void>((resolve) => server.listen(dir.join('s'), resolve));
    const handled: number[] = [];
    const reason = await new Promise<Error>((resolve) => {
      const policy = connectPolicy({
        socket: dir.join('s'),
        name: 'w',
        onGeneration: ({ generation }) => void handled.push(generation),
        onEvent: (event) => {
          if (event.type !== 'disconnected') return;
          resolve(event.reason);
          void policy.close();
        },
      });
    });
    server.close();
    return { reason, handled };
  }

  const greeting = '{"writ":1,"version":"0.1.0"}\n';
  const wrong: readonly (readonly [string, string])[] = [
    ['no greeting', '{"type":"generation","id":1,"generation":1,"path":"/g"}\n'],
    ['another protocol', '{"writ":2,"version":"0.1.0"}\n'],
    ['no JSON', 'HTTP/1.1 400 Bad Request\r\n'],
    ['a relative path', `${greeting}{"type":"generation","id":1,"generation":1,"path":"g"}\n`],
    ['no number', `${greeting}{"type":"generation","id":1,"generation":"1","path":"/g"}\n`],
    ['an endless line', `${greeting}${'x'.repeat(70_000)}`],
  ];
  for (const [what, lines] of wrong) {
    it(`goes away and uses nothing of it: ${what}`, async () => {
      const { reason, handled } = await meets(lines);
      assert.equal(codeOf(reason), 'MESSAGE_MALFORMED', String(reason));
      assert.deepEqual(handled, []);
    });
  }

  it('overhears what a newer agent says beside generations, and answers its pings', async () => {
    using dir = tempDir();
    const received = new Promise<string>((resolve) => {
      const server = createServer((socket) => {
        let text = '';
        socket.on('data', (chunk) => {
          text += chunk.toString();
          if (!text.includes('ack')) return;
          socket.destroy();
          server.close();
          resolve(text);
        });
        socket.write(`${greeting}{"type":"weather"}\n{"type":"ping","id":3}\n`);
        socket.write('{"type":"generation","id":9,"generation":4,"path":"/g","more":1}\n');
      });
      server.listen(dir.join('s'), () => {
        policy = connectPolicy({ socket: dir.join('s'), name: 'w', onGeneration: ignore });
      });
    });
    let policy: PolicyConnection | undefined;
    assert.equal(
      await received,
      `${greeting}{"type":"hello","name":"w","pid":${process.pid},"ping":true}\n{"type":"pong","id":3}\n{"type":"ack","id":9,"generation":4}\n`,
    );
    await policy?.close();
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { connectPolicy, type PolicyEvent } from '../../../src/sdk/policy-reader.js';
import { native } from '../../../src/workers/drivers/native.js';
import { until } from '../../kit/assert/until.js';
import { runNodeScript } from '../../kit/cli/child-script.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { driverContext } from '../../kit/workers/driver-context.js';

describe('the events of a connection', () => {
  it('say when the agent came, what it told, what was answered, and when it went', async () => {
    using dir = tempDir();
    const driver = native.create({ native: 'access' }, driverContext({ runDirectory: dir.path }));
    await driver.open?.();
    const events: PolicyEvent[] = [];
    const policy = connectPolicy({
      socket: dir.join('workers/access.sock'),
      name: 'w',
      onGeneration: ({ generation }) => {
        if (generation === 2) throw new Error('two is bad');
      },
      onEvent: (event) => events.push(event),
      random: () => 0,
    });
    await until(async () => (await driver.members()).includes('w'));
    for (const generation of [1, 2]) {
      await driver.reset('w', { target: { generation, path: `/g/${generation}` }, timeoutMs: 60_000 });
    }
    await until(() => events.length === 5);
    const [connected, ...rest] = events;
    assert.equal(connected?.type, 'connected');
    assert.match(connected.agentVersion, /^\d+\.\d+\.\d+/);
    assert.deepEqual(rest, [
      { type: 'notified', generation: 1, path: '/g/1' },
      { type: 'accepted', generation: 1 },
      { type: 'notified', generation: 2, path: '/g/2' },
      { type: 'refused', generation: 2, reason: 'two is bad' },
    ]);
    await driver.close?.();
    await until(() => events.length > 5);
    const gone = events[5];
    assert.equal(gone?.type, 'disconnected');
    assert.equal(gone.retryInMs, 50);
    assert.equal((gone.reason as Error & { code?: string }).code, 'AGENT_UNREACHABLE');
    await policy.close();
  });

  it('cannot turn a yes into a no: what a watcher throws is an uncaught exception, and the ack is sent', async () => {
    using dir = tempDir();
    const driver = native.create({ native: 'access' }, driverContext({ runDirectory: dir.path }));
    await driver.open?.();
    const script = `
      const { connectPolicy } = await import(at('src/sdk/policy-reader.js'));
      process.on('uncaughtException', (error) => { console.log(error.message); });
      const policy = connectPolicy({
        socket: ${JSON.stringify(dir.join('workers/access.sock'))}, name: 'w',
        onGeneration: () => undefined,
        onEvent: (event) => { if (event.type === 'accepted') setImmediate(() => policy.close()); throw new Error(event.type); },
      });`;
    const ended = runNodeScript(script);
    await until(async () => (await driver.members()).includes('w'));
    const answer = await driver.reset('w', { target: { generation: 1, path: '/g/1' }, timeoutMs: 60_000 });
    assert.equal(answer.kind, 'confirmed');
    const child = await ended;
    assert.ok(child.kind === 'exited');
    assert.deepEqual(child.stdout.trim().split('\n'), ['connected', 'notified', 'accepted']);
    await driver.close?.();
  });
});

// How an agent ends, how a stopped cycle ends, and what a reload changes.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { createConnection } from 'node:net';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../src/agent/cycle/sync-cycle.js';
import type { CycleEventLine, CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { gateIn } from '../../kit/agent/agent-in-process.js';
import { active, siteWithRelease, zone } from '../../kit/agent/agent-with-release.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../kit/workers/scripted-driver.js';

describe('the end of the agent', longCase, () => {
  it(
    'within a cycle leaves no refusal and no staged tree, and the next start completes the update',
    longCase,
    async () => {
      using dir = tempDir();
      const gate = gateIn(dir);
      const site = await siteWithRelease(dir, { bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
      await using agent = site.start();
      await gate.reached();
      const waits = rejectsCode('AGENT_STOPPING', agent.pull());
      await agent.status();
      agent.stop();
      await agent.ended;
      await waits;
      assert.deepEqual(
        agent.cycles().map((one) => [one.outcome, one.problems[0]?.code]),
        [['failed', 'INTERRUPTED']],
      );
      assert.deepEqual(fs.readdirSync(site.paths.staging), []);
      assert.equal(fs.existsSync(site.paths.rejected), false);
      assert.equal(fs.existsSync(site.paths.journal), false);
      assert.equal(fs.existsSync(site.paths.current), false);
      gate.open();
      await using again = site.start();
      await again.hasEnded(1);
      assert.equal(active(site), 'version 1\n');
    },
  );

  it('does not wait for a client that keeps its connection open', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const idle = createConnection({ path: site.paths.socket, allowHalfOpen: true });
    idle.write(`{"writ":1,"version":"0.1.0"}\n{"type":"status"}\n`);
    let text = '';
    idle.on('data', (chunk) => {
      text += chunk;
    });
    await until(() => text.includes('status.result'));
    agent.stop();
    await agent.ended;
    idle.destroy();
  });
});

describe('a cycle that is stopped', () => {
  const stoppedAt = async (
    step: 'canary' | 'load',
  ): Promise<{ test: TestHost; result: CycleResult; begun: readonly string[] }> => {
    const load = { run: ['true'], timeoutMs: 60_000 } as const;
    const test = testHost({ groups: { app: { driver: scriptedDriver({ a: confirms }), config: { load } } } });
    for (const serial of [1, 2]) {
      await test.publish('access', { 'policy.yaml': `${serial}` }, { serial });
      if (serial === 1) assert.equal((await test.pull()).exitCode, 0);
    }
    const stop = new AbortController();
    const begun: string[] = [];
    const onEvent = (event: CycleEventLine): void => {
      if (event.type !== 'step.started') return;
      begun.push(event.step);
      if (event.step === step) stop.abort();
    };
    const request = { cycle: 'c-ab', trigger: 'poll', force: 'no' } as const;
    const { result } = await syncCycle(test.host, { ...request, signal: stop.signal, onEvent });
    return { test, result, begun };
  };

  for (const step of ['canary', 'load'] as const) {
    it(`in ${step} leaves the old policy and records no refusal`, async () => {
      const { test, result, begun } = await stoppedAt(step);
      using _ = test;
      assert.deepEqual([result.outcome, result.problems[0]?.code], ['failed', 'INTERRUPTED']);
      assert.equal(begun.includes('swap'), step === 'load', 'a stop before the swap needs no restore');
      assert.equal(test.read('access/policy.yaml'), '1');
      assert.deepEqual(test.host.refusals.read().refusals, []);
      assert.equal(fs.existsSync(test.host.paths.journal), false);
      assert.equal(test.host.ledger.read().workers['app/a']?.wanted, 1);
      assert.equal((await test.pull()).outcome, 'activated');
    });
  }
});

describe('a reload', () => {
  it(
    'with a mistake keeps the configuration in use, and reports the problem until a reload succeeds',
    longCase,
    async () => {
      using dir = tempDir();
      const site = await siteWithRelease(dir);
      await using agent = site.start();
      await agent.hasEnded(1);
      fs.writeFileSync(site.configPath, 'bundles: 7\n');
      agent.reload();
      await until(async () => (await agent.status()).problems.some((one) => one.code === 'CONFIG_INVALID'));
      await site.repository.publish(zone(2));
      assert.equal((await agent.pull()).outcome, 'activated');
      assert.deepEqual(
        (await agent.status()).problems.map((one) => one.code),
        ['CONFIG_INVALID'],
        'a new policy does not fix the file',
      );
      site.configure({ poll: { every: '1h' } });
      agent.reload();
      await agent.hasEnded(3);
      assert.equal(agent.cycles().at(-1)?.trigger, 'reload');
      assert.deepEqual((await agent.status()).problems, []);
    },
  );

  it('is done once for a hundred requests while one waits, and does not delay a pull', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const reloads = (): number => agent.log.named('configuration reloaded').length;
    for (let count = 0; count < 100; count++) agent.reload();
    assert.equal((await agent.pull()).outcome, 'unchanged');
    await until(() => reloads() === 1);
    agent.reload();
    await until(() => reloads() === 2);
  });

  it('activates an added bundle at once', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await site.repository.publish({ 'policy.yaml': 'a: 1\n' }, { bundle: 'access' });
    await using agent = site.start();
    await agent.hasEnded(1);
    site.configure({ bundles: [{ name: 'dns-edge' }, { name: 'access' }] });
    agent.reload();
    await until(() => fs.existsSync(`${site.paths.current}/access/policy.yaml`));
  });

  it('refuses to move the policy directory that workers use', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    site.configure({ policy: dir.join('elsewhere') });
    agent.reload();
    await until(async () => (await agent.status()).problems.some((one) => one.facts['key'] === 'policy'));
    assert.equal(fs.existsSync(dir.join('elsewhere')), false);
  });

  it('leaves the old sockets open when it cannot open the new ones', async () => {
    using dir = tempDir();
    const workers = (name: string) => [{ name, uses: ['dns-edge'], reset: { native: name, min: 0 } }];
    const site = await siteWithRelease(dir, { workers: workers('app') });
    await using agent = site.start();
    await agent.hasEnded(1);
    fs.writeFileSync(`${site.paths.run}/workers/other.sock`, 'no socket');
    site.configure({ workers: workers('other') });
    agent.reload();
    await until(async () => (await agent.status()).problems.some((one) => one.code === 'SOCKET_IN_USE'));
    const socket = createConnection({ path: `${site.paths.run}/workers/app.sock` });
    await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
    socket.destroy();
    assert.equal((await agent.pull()).outcome, 'unchanged');
  });

  it('reports at once whether another sandbox mode is available', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir, { sandbox: 'off' });
    await using agent = site.start();
    await agent.hasEnded(1);
    assert.equal((await agent.status()).sandbox?.state, 'off');
    site.configure({ sandbox: 'auto' });
    await agent.ask({ type: 'reload', by: 'anna' });
    const { mode, state } = (await agent.status()).sandbox ?? {};
    assert.deepEqual([mode, ['on', 'missing', 'unusable'].includes(`${state}`)], ['auto', true]);
  });

  it('is answered with its result', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    const done = (await agent.ask({ type: 'reload', by: 'anna' })).at(-1);
    assert.ok(done?.type === 'pull.result');
    assert.deepEqual([done.trigger, done.outcome], ['reload', 'activated']);
    site.configure({ policy: dir.join('elsewhere') });
    await rejectsCode('CONFIG_INVALID', agent.ask({ type: 'reload', by: 'anna' }));
    fs.writeFileSync(site.configPath, '{');
    await rejectsCode('CONFIG_SYNTAX', agent.ask({ type: 'reload', by: 'anna' }));
    assert.equal((await agent.pull()).outcome, 'unchanged', 'the agent keeps its configuration');
  });
});

// A running agent as its clients see it: native workers, an operator who rolls back, the control socket.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { appendHistory } from '../../../src/agent/job/history.js';
import type { HistoryEntry } from '../../../src/core/protocol/control-protocol.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { active, minuteMs, siteWithRelease, zone } from '../../kit/agent/agent-with-release.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { cycleResult } from '../../kit/cli/cycle-results.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { joinAs, type RawWorker } from '../../kit/workers/raw-worker.js';

describe('a native worker', () => {
  it('is notified of the active generation when it connects and after a restart, and stays connected over a reload that does not concern it', async () => {
    using dir = tempDir();
    const workers = [{ name: 'app', uses: ['dns-edge'], reset: { native: 'app' } }];
    const site = await siteWithRelease(dir, { workers, poll: { every: '1h' } });
    const join = () => joinAs(`${site.paths.run}/workers/app.sock`, 'web');
    const confirm = async (worker: RawWorker): Promise<void> => {
      const { id, generation } = JSON.parse(await worker.line()) as { id: number; generation: number };
      worker.send({ type: 'ack', id, generation });
    };
    {
      await using agent = site.start();
      await agent.hasEnded(1);
      const worker = await join();
      await confirm(worker);
      await until(async () => (await agent.status()).workers[0]?.state === 'confirmed');
      assert.equal((await agent.status()).confirmed, true);
      agent.reload();
      await agent.hasEnded(2);
      assert.deepEqual(
        [agent.log.named('configuration reloaded').length, agent.cycles()[1]?.outcome],
        [1, 'unchanged'],
      );
      await site.repository.publish(zone(2));
      const pull = agent.pull();
      // Over the same connection.
      await confirm(worker);
      assert.deepEqual([(await pull).outcome, (await pull).confirmed], ['activated', true]);
      site.configure({ workers: [{ ...workers[0], reset: { native: 'app', timeout: '7s' } }] });
      agent.reload();
      await worker.closed();
      await confirm(await join());
      await until(async () => (await agent.status()).confirmed);
    }
    await using again = site.start();
    await again.ready;
    await confirm(await join());
    await until(async () => (await again.status()).confirmed);
  });

  it('is disconnected by a reload that removes the check of its bundle, because the check decides what its confirmation is worth', async () => {
    using dir = tempDir();
    const workers = [{ name: 'app', uses: ['dns-edge'], reset: { native: 'app' } }];
    const checked = [{ name: 'dns-edge', checks: [{ name: 'sane', run: ['true'] }] }];
    const site = await siteWithRelease(dir, { workers, poll: { every: '1h' }, bundles: checked });
    await using agent = site.start();
    await agent.hasEnded(1);
    const worker = await joinAs(`${site.paths.run}/workers/app.sock`, 'web');
    await worker.line();
    site.configure({ bundles: [{ name: 'dns-edge' }] });
    agent.reload();
    await worker.closed();
  });
});

describe('a release that an operator rolled back', longCase, () => {
  it('is held, and no poll activates it until resume', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    await agent.pull();
    const back = (await agent.ask({ type: 'rollback', by: 'anna', reason: 'views broke' })).at(-1);
    assert.ok(back?.type === 'rollback.result');
    assert.deepEqual([back.outcome, active(site)], ['activated', 'version 1\n']);
    await until(() => site.clock.sleeping() === 5);
    await site.clock.advance(5 * minuteMs);
    await agent.hasEnded(4);
    assert.deepEqual([agent.cycles().at(-1)?.outcome, active(site)], ['deferred', 'version 1\n']);
    const held = await agent.status();
    assert.deepEqual(
      held.holds.map((one) => [one.bundle, one.serial, one.by, one.reason]),
      [['dns-edge', 2, 'anna', 'views broke']],
    );
    const resumed = (await agent.ask({ type: 'resume', by: 'anna' })).at(-1);
    assert.ok(resumed?.type === 'resume.result');
    assert.deepEqual(resumed.ended, [{ kind: 'hold', what: 'dns-edge 2' }]);
    assert.deepEqual(JSON.parse(fs.readFileSync(site.paths.status, 'utf8')).holds, []);
    await until(() => site.clock.sleeping() === 5);
    await site.clock.advance(5 * minuteMs);
    await agent.hasEnded(5);
    assert.equal(active(site), 'version 2\n');
  });
});

describe('a paused agent', longCase, () => {
  it('stays paused over a restart, and activates the release by itself when the pause ends', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    const untilMs = site.clock.nowMs() + minuteMs;
    {
      await using agent = site.start();
      await agent.hasEnded(1);
      const paused = (await agent.ask({ type: 'pause', by: 'anna', reason: 'freeze', untilMs })).at(-1);
      assert.ok(paused?.type === 'pause.result');
      await site.repository.publish(zone(2));
      assert.equal((await agent.pull()).exitCode, 8);
      assert.equal(JSON.parse(fs.readFileSync(site.paths.status, 'utf8')).pause.by, 'anna');
    }
    await using again = site.start();
    await again.ready;
    assert.equal((await again.status()).pause?.reason, 'freeze');
    await until(() => site.clock.sleeping() === 5);
    await site.clock.advance(minuteMs);
    await until(() => again.cycles().some((one) => one.outcome === 'activated'));
    assert.equal(active(site), 'version 2\n');
    assert.equal((await again.status()).pause, undefined);
  });
});

describe('a worker group with an activation delay', longCase, () => {
  const reset = { run: ['true'] };
  const app = { name: 'app', uses: ['dns-edge'], settle: '30s', reset, confirm: 'accept' };
  const delayed = { workers: [app] };

  it('makes a pull wait, and the pull returns the result of its own notification', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir, delayed);
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    const asked = agent.pull();
    await agent.hasEnded(2);
    assert.deepEqual([agent.cycles()[1]?.outcome, active(site)], ['deferred', 'version 1\n']);
    await until(() => site.clock.sleeping() === 6);
    await site.clock.advance(30_000);
    const result = await asked;
    assert.deepEqual([result.exitCode, active(site)], [0, 'version 2\n']);
    const notified = agent.cycles().find((one) => one.changed && one.generation === result.generation);
    assert.match(notified?.workers[0]?.notificationId ?? '', new RegExp(`^${notified?.cycle}\\.`));
  });

  it('is moved when its delay ends, without a poll', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir, delayed);
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    await until(() => site.clock.sleeping() === 5);
    // Exactly to the poll: the delay must not end before the poll has found the release.
    const { nextPollAtMs = 0 } = await agent.status();
    await site.clock.advance(nextPollAtMs - site.clock.nowMs());
    await agent.hasEnded(2);
    assert.equal((await agent.status()).waiting?.[0]?.serial, 2);
    await until(() => site.clock.sleeping() === 5);
    await site.clock.advance(35_000);
    await until(() => active(site) === 'version 2\n');
    assert.equal((await agent.status()).waiting, undefined);
  });
});

describe('the control socket', () => {
  it('sends a complete long history to a slow reader', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const text = 'x'.repeat(1900);
    const steps = Array.from({ length: 25 }, () => ({ step: 'check', verdict: 'ok', text, durationMs: 1 }));
    const entry = { schema: 1, type: 'history.entry', result: cycleResult('activated'), steps };
    for (let count = 0; count < 120; count += 1)
      appendHistory(site.paths, createDurableFs(), entry as HistoryEntry);
    const answers = await agent.ask({ type: 'history', limit: 1000 });
    assert.equal(answers.at(-1)?.type, 'end');
    assert.equal(answers.length, 122);
  });

  it('refuses a malformed request, and answers the next one', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    await rejectsCode('MESSAGE_MALFORMED', agent.ask({ type: 'nonsense' } as never));
    await rejectsCode('MESSAGE_MALFORMED', agent.ask({ type: 'history', limit: 0 }));
    assert.equal((await agent.status()).agent, 'run');
  });
});

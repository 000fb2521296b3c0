// The whole cycle, from the refresh to the answer of the last worker, with each of its outcomes.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { WritError } from '../../../src/core/errors.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import type { Driver } from '../../../src/workers/contract/driver.js';
import { inodeState } from '../../kit/assert/directory-state.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver, unreachable } from '../../kit/workers/scripted-driver.js';

const current = (test: TestHost): string => fs.readlinkSync(test.host.paths.current);
const codes = (result: { problems: readonly { code: string }[] }): string[] =>
  result.problems.map((one) => one.code);

describe('a cycle', () => {
  it('activates a first release and notifies the workers', async () => {
    const driver = scriptedDriver({ a: confirms, b: confirms });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const { result, events } = await test.sync();
    assert.deepEqual(codes(result), []);
    assert.equal(result.outcome, 'activated');
    assert.equal(result.exitCode, 0);
    assert.equal(result.confirmed, true);
    assert.equal(current(test), 'generations/1');
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    assert.deepEqual(driver.notified, ['a 1', 'b 1']);
    const finished = events.flatMap((one) => (one.type === 'step.finished' ? [one.step] : []));
    assert.deepEqual(finished, [
      'refresh',
      'select',
      'fetch',
      'stage',
      'verify',
      'check',
      'canary',
      'flush',
      'swap',
      'load',
      'reset',
      'probe',
      'commit',
    ]);
    assert.deepEqual(fs.readdirSync(test.host.paths.staging), []);
    assert.equal(fs.existsSync(test.host.paths.journal), false);
  });

  it('asks two questions and writes nothing when nothing is new', async () => {
    using test = testHost();
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    await test.pull();
    test.repository.takeRequests();
    const before = inodeState(test.directory);
    const result = await test.pull();
    assert.equal(result.outcome, 'unchanged');
    assert.equal(result.changed, false);
    assert.deepEqual(test.repository.takeRequests().length, 2);
    assert.deepEqual(inodeState(test.directory), before);
  });

  it('activates the next release as a new generation and keeps the one before', async () => {
    using test = testHost();
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    await test.pull();
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    const result = await test.pull();
    assert.equal(result.outcome, 'activated');
    assert.deepEqual([result.fromGeneration, result.generation], [1, 2]);
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    assert.deepEqual(fs.readdirSync(test.host.paths.generations).sort(), ['1', '2']);
    assert.equal(test.host.ledger.read().previous, 1);
  });

  it('judges each bundle alone: one is refused, the other becomes active, and the exit code shows it', async () => {
    const check = {
      kind: 'run',
      name: 'no bad word',
      run: ['sh', '-c', '! grep -q bad {bundle}/*'],
      timeoutMs: 60_000,
    } as const;
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge', checks: [check] }] });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    await test.publish('dns-edge', { 'block.rpz': 'good\n' }, { serial: 1 });
    assert.equal((await test.pull()).outcome, 'activated');
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    await test.publish('dns-edge', { 'block.rpz': 'bad\n' }, { serial: 2 });
    const result = await test.pull();
    assert.equal(result.exitCode, 3);
    assert.deepEqual(
      result.bundles.map((one) => [one.bundle, one.outcome, one.problem?.code]),
      [
        ['access', 'activated', undefined],
        ['dns-edge', 'rejected', 'CHECK_FAILED'],
      ],
    );
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    assert.equal(test.read('dns-edge/block.rpz'), 'good\n');
  });

  it('records a refused release: nothing is downloaded again, and the answer is rejected again', async () => {
    const check = { kind: 'run', name: 'never', run: ['false'], timeoutMs: 60_000 } as const;
    using test = testHost({ bundles: [{ name: 'access', checks: [check] }] });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const first = await test.pull();
    assert.deepEqual(codes(first), ['CHECK_FAILED']);
    test.repository.takeRequests();
    const again = await test.pull();
    assert.notEqual(first.bundles[0]?.retryAtMs, undefined);
    assert.equal(again.bundles[0]?.retryAtMs, first.bundles[0]?.retryAtMs);
    assert.equal(again.outcome, 'rejected');
    assert.deepEqual(codes(again), ['REMEMBERED_REFUSAL']);
    assert.equal(again.bundles[0]?.remembered, true);
    assert.equal(
      test.repository.takeRequests().some((one) => one.includes('targets/')),
      false,
    );
    await test.clock.advance(3_600_001);
    assert.deepEqual(codes(await test.pull()), ['CHECK_FAILED']);
  });

  it('tries a release again that was refused by a clock which was set back since', async () => {
    const check = { kind: 'run', name: 'never', run: ['false'], timeoutMs: 60_000 } as const;
    using test = testHost({ bundles: [{ name: 'access', checks: [check] }] });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const nowMs = test.clock.nowMs();
    test.clock.setWallTime(nowMs + 5 * 86_400_000);
    assert.deepEqual(codes(await test.pull()), ['CHECK_FAILED']);
    test.clock.setWallTime(nowMs);
    assert.deepEqual(codes(await test.pull()), ['CHECK_FAILED']);
    assert.deepEqual(codes(await test.pull()), ['REMEMBERED_REFUSAL']);
  });

  it('reports the refusal in its step, with the output of the check', async () => {
    const check = {
      kind: 'run',
      name: 'zones',
      run: ['sh', '-c', 'echo block.rpz:7: bad; exit 1'],
      timeoutMs: 60_000,
    } as const;
    using test = testHost({ bundles: [{ name: 'access', checks: [check] }, { name: 'dns-edge' }] });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    await test.publish('dns-edge', { 'block.rpz': 'good\n' }, { serial: 1 });
    const { events } = await test.sync();
    const failed = events.flatMap((one) =>
      one.type === 'step.finished' && one.verdict === 'fail' ? [[one.step, one.text]] : [],
    );
    assert.deepEqual(failed, [['check', 'access: zones: FAIL (exit 1)\nblock.rpz:7: bad']]);
  });

  it('removes a refusal when the release has become active', async () => {
    const flag = fs.mkdtempSync('/tmp/writ-flag-');
    try {
      const check = {
        kind: 'run',
        name: 'ready',
        run: ['test', '-e', `${flag}/ready`],
        timeoutMs: 60_000,
      } as const;
      using test = testHost({ bundles: [{ name: 'access', checks: [check] }] });
      await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
      assert.deepEqual(codes(await test.pull()), ['CHECK_FAILED']);
      assert.equal(test.host.refusals.read().refusals.length, 1);
      fs.writeFileSync(`${flag}/ready`, '');
      assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
      assert.deepEqual(test.host.refusals.read().refusals, []);
    } finally {
      fs.rmSync(flag, { recursive: true });
    }
  });

  it('does not record an error that the bundle did not cause', async () => {
    const check = { kind: 'run', name: 'absent', run: ['/nonexistent/checker'], timeoutMs: 60_000 } as const;
    using test = testHost({ bundles: [{ name: 'access', checks: [check] }] });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const result = await test.pull();
    assert.equal(result.exitCode, 1);
    assert.deepEqual(codes(result), ['CHECK_BROKEN']);
    assert.deepEqual(test.host.refusals.read().refusals, []);
  });

  it('restores the old generation and notifies every worker again where one refuses', async () => {
    const driver = scriptedDriver({ a: confirms, b: confirms });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    await test.pull();
    driver.workers.set('b', (generation) =>
      generation === 2 ? refuses('view eu undefined')() : confirms(generation),
    );
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    const result = await test.pull();
    const mtimeOf = (generation: number): number =>
      fs.statSync(join(test.host.paths.generations, `${generation}/access/policy.yaml`)).mtimeMs;
    assert.ok(mtimeOf(1) > mtimeOf(2), 'or a daemon that loaded the refused file would keep it');
    assert.equal(result.outcome, 'rolled-back');
    assert.equal(result.exitCode, 5);
    assert.deepEqual(codes(result), ['WORKER_REFUSED']);
    assert.equal(current(test), 'generations/1');
    assert.deepEqual(driver.notified.slice(2), ['a 2', 'b 2', 'a 1', 'b 1']);
    assert.equal(test.host.refusals.read().refusals[0]?.code, 'WORKER_REFUSED');
    assert.equal((await test.pull()).outcome, 'rejected');
  });

  it('tries the other bundles without the one that a worker refused', async () => {
    const dns = scriptedDriver({ kresd: confirms });
    const app = scriptedDriver({ a: confirms });
    using test = testHost({
      bundles: [{ name: 'access' }, { name: 'dns-edge' }],
      groups: {
        resolver: { driver: dns, config: { uses: ['dns-edge'] } },
        app: { driver: app, config: { uses: ['access'] } },
      },
    });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.publish('dns-edge', { 'block.rpz': '1' }, { serial: 1 });
    await test.pull();
    dns.workers.set('kresd', (generation) => (generation > 1 ? refuses('no')() : confirms(generation)));
    await test.publish('access', { 'policy.yaml': '2' }, { serial: 2 });
    await test.publish('dns-edge', { 'block.rpz': '2' }, { serial: 2 });
    const result = await test.pull();
    assert.equal(result.exitCode, 5);
    assert.equal(test.read('access/policy.yaml'), '2');
    assert.equal(test.read('dns-edge/block.rpz'), '1');
  });

  it('removes the link again when the first activation is refused', async () => {
    const driver = scriptedDriver({ a: refuses('no') });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const result = await test.pull();
    assert.equal(result.outcome, 'rolled-back');
    assert.equal(result.generation, undefined);
    assert.equal(fs.existsSync(test.host.paths.current), false);
  });

  it('is degraded while a worker cannot be reached, and names it until it has answered', async () => {
    const driver = scriptedDriver({ a: confirms, b: unreachable });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const result = await test.pull();
    assert.equal(result.exitCode, 4);
    assert.deepEqual(codes(result), ['WORKER_UNREACHABLE']);
    assert.equal(result.problems[0]?.facts['worker'], 'b');
    assert.equal((await test.pull()).exitCode, 4);
    driver.workers.set('b', confirms);
    const healed = await test.pull();
    assert.equal(healed.exitCode, 0);
    assert.deepEqual(driver.notified, ['a 1', 'b 1', 'b 1', 'b 1']);
  });

  it('is degraded while the workers cannot be listed, and the policy stays', async () => {
    const driver: Driver = {
      ...scriptedDriver({}),
      members: () => Promise.reject(new WritError('WORKER_UNREACHABLE', '/run/control: EACCES')),
    };
    using test = testHost({
      groups: { app: { driver }, other: { driver: scriptedDriver({ a: confirms }) } },
    });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const result = await test.pull();
    assert.equal(result.outcome, 'degraded');
    assert.deepEqual(codes(result), ['WORKER_UNREACHABLE']);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    assert.deepEqual(
      result.workers.map((one) => one.state),
      ['confirmed'],
    );
  });

  it(
    'is unconfirmed where workers were only notified, and degraded where a confirmation is required',
    longCase,
    async () => {
      const silent = (): { kind: 'notified'; text: string } => ({ kind: 'notified', text: 'signalled' });
      using notified = testHost({ groups: { app: { driver: scriptedDriver({ a: silent }, 'silent') } } });
      await notified.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
      const result = await notified.pull();
      assert.deepEqual([result.outcome, result.confirmed, result.exitCode], ['activated', false, 0]);
      using strict = testHost({
        groups: {
          app: { driver: scriptedDriver({ a: confirms }, 'early'), config: { confirm: 'required' } },
        },
      });
      await strict.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
      const unproven = await strict.pull();
      assert.deepEqual([unproven.exitCode, codes(unproven)], [4, ['WORKER_UNCONFIRMED']]);
      // A poll that finds nothing new proves nothing.
      const again = await strict.pull();
      assert.deepEqual([again.exitCode, codes(again)], [4, ['WORKER_UNCONFIRMED']]);
      const facts = { version: '0', state: 'run', contact: { contact: {} }, problems: [] } as const;
      const report = statusReport(strict.host, facts);
      assert.deepEqual(
        [report.confirmed, report.problems.map((one) => one.code), judgeHostHealth(report).level],
        [false, ['WORKER_UNCONFIRMED'], 'warning'],
      );
    },
  );
});

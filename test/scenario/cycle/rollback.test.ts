// A rollback by a person: its target, its holds, and the files that it does not change.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { resume } from '../../../src/agent/select/pause.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver } from '../../kit/workers/scripted-driver.js';

async function goBack(test: TestHost, generation?: number): Promise<CycleResult> {
  const { result } = await rollBack(test.host, {
    by: 'anna',
    reason: 'views broke',
    signal: new AbortController().signal,
    ...(generation === undefined ? {} : { generation }),
  });
  return result;
}

async function twoGenerations(test: TestHost): Promise<void> {
  await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
  await test.pull();
  await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
  await test.pull();
}

describe('a rollback', () => {
  it('activates the previous generation and notifies the workers', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    await twoGenerations(test);
    const result = await goBack(test);
    assert.deepEqual([result.type, result.outcome, result.exitCode], ['rollback.result', 'activated', 0]);
    assert.deepEqual([result.fromGeneration, result.generation], [2, 1]);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    assert.deepEqual(driver.notified, ['a 1', 'a 2', 'a 1']);
  });

  it('skips a generation that workers refused, and names it where there is no other one', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    const publish = (serial: number) => test.publish('access', { 'policy.yaml': `v${serial}` }, { serial });
    await publish(1);
    await test.pull();
    driver.workers.set('a', (generation) => (generation === 2 ? refuses('bad')() : confirms(generation)));
    await publish(2);
    assert.equal((await test.pull()).outcome, 'rolled-back');
    await publish(3);
    await test.pull();
    setLedger(test.host.ledger, { previous: 2 });
    const back = await goBack(test);
    assert.deepEqual([back.outcome, back.generation], ['activated', 1]);
    assert.equal((await goBack(test, 2)).outcome, 'rolled-back', 'who names it may have it tried');
    const none = await goBack(test);
    assert.deepEqual([none.problems[0]?.code, none.exitCode, none.generation], ['NO_PREVIOUS', 2, 1]);
  });

  it('can be reversed by an end of the hold only while the repository offers the replaced release', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    await twoGenerations(test);
    assert.equal((await goBack(test)).bundles[0]?.resumable, true);
    resume(test.host);
    const { generation: active = 0 } = await test.pull();
    driver.workers.set('a', (generation) => (generation > active ? refuses('bad')() : confirms(generation)));
    await test.publish('access', { 'policy.yaml': 'version: 3\n' }, { serial: 3 });
    assert.equal((await test.pull()).outcome, 'rolled-back');
    const back = await goBack(test, 1);
    assert.deepEqual([back.outcome, back.bundles[0]?.resumable], ['activated', undefined]);
    resume(test.host);
    assert.equal((await test.pull()).generation, 1, 'what is offered is refused');
  });

  it('holds the replaced release: a poll does not activate it, and takes a newer one', async () => {
    using test = testHost();
    await twoGenerations(test);
    await goBack(test);
    const held = await test.pull();
    assert.deepEqual([held.outcome, held.exitCode, held.problems[0]?.code], ['deferred', 8, 'RELEASE_HELD']);
    assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    await test.publish('access', { 'policy.yaml': 'version: 3\n' }, { serial: 3 });
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(test.read('access/policy.yaml'), 'version: 3\n');
    assert.deepEqual(test.host.ledger.read().holds, []);
  });

  it('holds the releases between the replaced one and the activated one', async () => {
    using test = testHost();
    await test.publish('access', { 'policy.yaml': 'version: 5\n' }, { serial: 5 });
    await test.pull();
    await test.publish('access', { 'policy.yaml': 'version: 7\n' }, { serial: 7 });
    await test.pull();
    await goBack(test);
    await test.publish('access', { 'policy.yaml': 'version: 6\n' }, { serial: 6, withdrawn: [7] });
    const held = await test.pull();
    assert.deepEqual([held.outcome, held.problems[0]?.code], ['deferred', 'RELEASE_HELD']);
    assert.equal(test.read('access/policy.yaml'), 'version: 5\n');
  });

  it('is ended by resume, and at once by a forced pull', async () => {
    for (const way of ['resume', 'force'] as const) {
      using test = testHost();
      await twoGenerations(test);
      await goBack(test);
      if (way === 'resume') assert.deepEqual(resume(test.host).ended, [{ kind: 'hold', what: 'access 2' }]);
      const result = await test.pull({ force: way === 'force' ? 'yes' : 'no' });
      assert.equal(result.outcome, 'activated', way);
      assert.equal(result.generation, 3, 'a tree that returns is a new tree and a new generation');
      assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    }
  });

  it('gives the older files a later time than any before, so that no daemon skips them', async () => {
    using test = testHost();
    await twoGenerations(test);
    const newest = fs.statSync(join(test.host.paths.current, 'access/policy.yaml')).mtimeMs;
    await goBack(test);
    assert.ok(fs.statSync(join(test.host.paths.current, 'access/policy.yaml')).mtimeMs > newest);
  });

  it('sets the activation time of the restored bundle, and keeps that of the others', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'zones' }] });
    const facts = { version: '0.1.0', state: 'run', contact: { contact: {} }, problems: [] } as const;
    const since = (): unknown[] => statusReport(test.host, facts).bundles.map((one) => one.activatedAtMs);
    await test.publish('zones', { 'a.zone': '1' }, { serial: 1 });
    const firstMs = test.clock.nowMs();
    await twoGenerations(test);
    await test.clock.advance(60_000);
    await goBack(test);
    assert.deepEqual(since(), [firstMs + 60_000, firstMs]);
    await test.clock.advance(60_000);
    await test.publish('zones', { 'a.zone': '2' }, { serial: 2 });
    await test.pull();
    assert.deepEqual(since(), [firstMs + 60_000, firstMs + 120_000]);
    assert.deepEqual(Object.keys(test.host.ledger.read().activatedAtMs ?? {}), ['access', 'zones']);
  });

  it('does not change the tree of a bundle that stays', async () => {
    using test = testHost({ bundles: [{ name: 'access' }, { name: 'dns-edge' }] });
    await test.publish('dns-edge', { 'block.rpz': 'x' }, { serial: 1 });
    await twoGenerations(test);
    const before = fs.statSync(join(test.host.paths.current, 'dns-edge/block.rpz'));
    await goBack(test);
    const after = fs.statSync(join(test.host.paths.current, 'dns-edge/block.rpz'));
    assert.deepEqual([after.ino, after.mtimeMs, after.ctimeMs], [before.ino, before.mtimeMs, before.ctimeMs]);
  });

  it('activates a named generation, and lists the retained ones where it does not exist', async () => {
    using test = testHost();
    await twoGenerations(test);
    const missing = await goBack(test, 7);
    assert.deepEqual(
      [missing.outcome, missing.problems[0]?.code, missing.exitCode],
      ['failed', 'NO_PREVIOUS', 2],
    );
    assert.deepEqual(missing.problems[0]?.facts['kept'], [1, 2]);
    assert.equal((await goBack(test, 2)).problems[0]?.code, 'NO_PREVIOUS', 'it is active already');
    assert.equal((await goBack(test, 1)).generation, 1);
  });

  it('refuses a generation whose tree was changed on disk', async () => {
    using test = testHost();
    await twoGenerations(test);
    const [tree] = fs
      .readdirSync(join(test.host.paths.bundles, 'access'))
      .filter((name) => name.startsWith('1-'));
    fs.writeFileSync(join(test.host.paths.bundles, 'access', tree!, 'policy.yaml'), 'edited\n');
    const result = await goBack(test);
    assert.deepEqual([result.outcome, result.problems[0]?.code], ['failed', 'STATE_DAMAGED']);
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  });

  it('is reversed where a worker refuses the older generation', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    await twoGenerations(test);
    driver.workers.set('a', (generation) => (generation === 1 ? refuses('too old')() : confirms(generation)));
    const result = await goBack(test);
    assert.deepEqual([result.outcome, result.exitCode], ['rolled-back', 5]);
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  });

  it('that failed holds nothing: the release stays active without a hold', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    await twoGenerations(test);
    driver.workers.set('a', (generation) => (generation === 1 ? refuses('too old')() : confirms(generation)));
    await goBack(test);
    assert.deepEqual(test.host.ledger.read().holds, []);
    assert.deepEqual(
      [(await test.pull()).outcome, test.read('access/policy.yaml')],
      ['unchanged', 'version: 2\n'],
    );
  });
});

// Loaders, probes and groups after the swap: which refusals restore the previous generation, and which workers are notified.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createReconciler } from '../../../src/agent/daemon/reconcile-loop.js';
import { resume } from '../../../src/agent/select/pause.js';
import type { WorkerGroupConfig } from '../../../src/core/config/config.js';
import { cycleOn } from '../../kit/agent/cycle-on.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { confirms, refuses, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const hook = (script: string, timeoutMs = 60_000): NonNullable<WorkerGroupConfig['load']> => ({
  run: ['sh', '-c', script],
  timeoutMs,
});
const current = (test: TestHost): string => fs.readlinkSync(test.host.paths.current);

/** Version 1 is active, version 2 is published; the hooks read the policy. */
async function secondRelease(
  config: Partial<WorkerGroupConfig>,
): Promise<{ test: TestHost; notified: string[] }> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ groups: { app: { driver, config } } });
  await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
  assert.equal((await test.pull()).exitCode, 0);
  await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
  return { test, notified: driver.notified };
}

describe('a loader', () => {
  it('causes a restore by its refusal, before any worker is notified of the new generation', async () => {
    const { test, notified } = await secondRelease({
      load: hook('grep -q "version: 1" {bundle}/policy.yaml'),
    });
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [5, 'LOADER_FAILED']);
    assert.equal(current(test), 'generations/1');
    assert.deepEqual(notified, ['a 1', 'a 1']);
    assert.equal(test.host.refusals.read().refusals[0]?.code, 'LOADER_FAILED');
  });

  it(
    'is retried without a verdict as often as its `retry` allows; its refusal is final',
    longCase,
    async () => {
      using dir = tempDir();
      const counted = `echo >> ${dir.join('tries')}; test $(wc -l < ${dir.join('tries')}) -ge 3 || exit 127`;
      const { test, notified } = await secondRelease({ load: { ...hook(counted), retry: 3 } });
      using _ = test;
      assert.equal((await test.pull()).exitCode, 0);
      assert.deepEqual(notified, ['a 1', 'a 2']);
      assert.equal(fs.readFileSync(dir.join('tries'), 'utf8').length, 4);
      const refuse = `grep -q "version: 1" {bundle}/policy.yaml && exit 0; echo >> ${dir.join('refusals')}; exit 1`;
      const other = await secondRelease({ load: { ...hook(refuse), retry: 3 } });
      using __ = other.test;
      assert.equal((await other.test.pull()).problems[0]?.code, 'LOADER_FAILED');
      assert.equal(fs.readFileSync(dir.join('refusals'), 'utf8').length, 1);
    },
  );

  it('that could not run causes a restore, and no refusal is recorded', async () => {
    // curl exits 52 without an answer.
    for (const exitCode of [52, 127]) {
      const load = hook(`grep -q "version: 1" {bundle}/policy.yaml || exit ${exitCode}`);
      const { test } = await secondRelease({ load });
      using _ = test;
      const result = await test.pull();
      assert.deepEqual([result.exitCode, result.problems[0]?.code], [1, 'LOADER_BROKEN']);
      assert.equal(current(test), 'generations/1');
      assert.deepEqual(test.host.refusals.read().refusals, []);
    }
  });

  it('gets the path and the number of the generation', async () => {
    const out = fs.mkdtempSync('/tmp/writ-loader-');
    try {
      const { test } = await secondRelease({
        load: hook(`echo "$WRIT_GENERATION_DIR {current} $WRIT_BUNDLE_DIR $PWD {scratch}" >> ${out}/seen`),
      });
      using _ = test;
      await test.pull();
      const [first, second] = fs
        .readFileSync(`${out}/seen`, 'utf8')
        .trim()
        .split('\n')
        .map((line) => line.split(' '));
      const { generations } = test.host.paths;
      assert.deepEqual(first?.slice(0, 3), [
        `${generations}/1`,
        `${generations}/1`,
        `${generations}/1/access`,
      ]);
      assert.deepEqual(second?.slice(0, 3), [
        `${generations}/2`,
        `${generations}/2`,
        `${generations}/2/access`,
      ]);
      assert.equal(second?.[3], second?.[4]);
      assert.equal(fs.existsSync(second?.[4] ?? ''), false);
    } finally {
      fs.rmSync(out, { recursive: true });
    }
  });

  it('that fails during the restore too blocks the host', async () => {
    const { test } = await secondRelease({
      load: hook(
        'test ! -e {current}/../2 && exit; grep -q "version: 1" {bundle}/policy.yaml && echo "File exists"; exit 1',
      ),
    });
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [6, 'ACTIVATION_BLOCKED']);
    assert.equal(current(test), 'generations/1');
    const blocked = test.host.ledger.read().blocked;
    assert.equal(blocked?.manifestDigests.length, 1);
    const again = await test.pull();
    assert.deepEqual([again.exitCode, again.changed], [6, false], 'nothing is tried again by itself');
    resume(test.host);
    await test.publish('access', { 'policy.yaml': 'version: 3\n' }, { serial: 3 });
    fs.rmSync(`${test.host.paths.generations}/2`, { recursive: true });
    assert.equal((await test.pull()).exitCode, 0);
    assert.equal(test.host.ledger.read().blocked, undefined);
  });
});

describe('a probe', () => {
  it('that does not see the generation causes a restore', async () => {
    const { test, notified } = await secondRelease({
      probe: { ...hook('grep -q "version: 1" {bundle}/policy.yaml'), retry: 1 },
    });
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [5, 'PROBE_FAILED']);
    assert.equal(current(test), 'generations/1');
    assert.deepEqual(notified, ['a 1', 'a 2', 'a 1']);
  });

  it('that cannot run causes a restore, and no refusal is recorded', longCase, async () => {
    const { test } = await secondRelease({
      probe: {
        ...hook('grep -q "version: 1" {bundle}/policy.yaml || sleep 30', 2000),
        retry: 0,
        deadlineMs: 2000,
      },
    });
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [1, 'PROBE_BROKEN']);
    assert.deepEqual(test.host.refusals.read().refusals, []);
  });

  it('confirms workers of a driver that proves nothing', async () => {
    const silent = (): { kind: 'notified'; text: string } => ({ kind: 'notified', text: 'signalled' });
    using test = testHost({
      groups: {
        app: {
          driver: scriptedDriver({ a: silent }, 'silent'),
          config: {
            probe: { ...hook('grep -q "version: 1" {bundle}/policy.yaml'), retry: 0 },
            confirm: 'required',
          },
        },
      },
    });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.confirmed], ['activated', true]);
    assert.equal(result.workers[0]?.state, 'confirmed');
  });
});

describe('a group', () => {
  it('with fewer members than min is degraded, and an empty one without a min confirms nothing', async () => {
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 2 };
    using few = testHost({ groups: { app: { driver: scriptedDriver({ a: confirms }), config: { reset } } } });
    await few.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    const result = await few.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [4, 'WORKERS_MISSING']);
    using none = testHost({ groups: { app: { driver: scriptedDriver({}) } } });
    await none.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    const empty = await none.pull();
    assert.deepEqual(
      [empty.exitCode, empty.confirmed, empty.problems],
      [0, false, []],
      'min: 0 is a fair use',
    );
  });

  it('is notified only if a path that it watches changed', async () => {
    const views = scriptedDriver({ v: confirms });
    const zones = scriptedDriver({ z: confirms });
    using test = testHost({
      groups: {
        views: { driver: views, config: { when: ['views/**'] } },
        zones: { driver: zones, config: { when: ['access:block.rpz'] } },
      },
    });
    await test.publish('access', { 'views/eu.yaml': '1', 'block.rpz': '1' }, { serial: 1 });
    await test.pull();
    await test.publish('access', { 'views/eu.yaml': '1', 'block.rpz': '2' }, { serial: 2 });
    await test.pull();
    assert.deepEqual(views.notified, ['v 1']);
    assert.deepEqual(zones.notified, ['z 1', 'z 2']);
  });

  it('that refuses at a first activation leaves no policy and is not notified of one', async () => {
    const driver = scriptedDriver({ a: refuses('no') });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
    await test.pull();
    assert.equal(driver.announced.at(-1), undefined);
  });
});

describe('a deferral (exit 75)', () => {
  it('of a loader restores the previous generation, records no refusal, and is retried', async () => {
    const { test, notified } = await secondRelease({
      load: hook('grep -q "version: 1" {bundle}/policy.yaml || exit 75'),
    });
    using _ = test;
    const result = await test.pull();
    assert.deepEqual([result.exitCode, result.problems[0]?.code], [8, 'LOADER_DEFERRED']);
    assert.deepEqual([current(test), test.host.refusals.read().refusals], ['generations/1', []]);
    assert.deepEqual([notified.at(-1), result.bundles[0]?.outcome], ['a 1', 'deferred']);
    await test.clock.advance(60_000);
    const willing = test.reopen({ groups: { app: { driver: scriptedDriver({ a: confirms }) } } });
    assert.equal((await cycleOn(willing)).outcome, 'activated');
  });

  it('of a loader also during the restore causes no block, and the loader runs later', async () => {
    using out = tempDir();
    const ready = out.join('ready');
    fs.writeFileSync(ready, '');
    const { test } = await secondRelease({ load: hook(`test -e ${ready} || exit 75`) });
    using _ = test;
    fs.rmSync(ready);
    const result = await test.pull();
    assert.deepEqual([result.exitCode, test.host.ledger.read().blocked], [8, undefined]);
    const settler = createReconciler();
    const { signal } = new AbortController();
    const first = await settler.runRound(test.host, { signal, loader: undefined });
    assert.equal(first.loader?.code, 'LOADER_PENDING');
    fs.writeFileSync(ready, '');
    await test.clock.advance(5000);
    const second = await settler.runRound(test.host, { signal, loader: first.loader });
    assert.deepEqual(
      [second.loader, second.hasChanged, test.host.ledger.read().loadPending],
      [undefined, true, undefined],
    );
  });

  it('of a probe neither confirms nor refuses', longCase, async () => {
    const silent = (): { kind: 'notified'; text: string } => ({ kind: 'notified', text: 'signalled' });
    for (const [confirm, exitCode] of [
      ['warn', 0],
      ['required', 4],
    ] as const) {
      const config = { confirm, probe: { ...hook('exit 75'), retry: 0 } };
      const driver = scriptedDriver({ a: silent }, 'silent');
      using test = testHost({ groups: { app: { driver, config } } });
      await test.publish('access', { 'policy.yaml': '1' }, { serial: 1 });
      const result = await test.pull();
      assert.deepEqual([result.exitCode, result.confirmed], [exitCode, false]);
      assert.equal(result.workers[0]?.state, 'notified');
    }
  });
});

describe('a stop signal', () => {
  it('does not discard a refusal that arrives at the same time', async () => {
    const stop = new AbortController();
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { 'policy.yaml': 'version: 1\n' }, { serial: 1 });
    await test.pull();
    await test.publish('access', { 'policy.yaml': 'version: 2\n' }, { serial: 2 });
    driver.workers.set('a', (generation) => {
      if (generation === 2) stop.abort();
      return generation === 2 ? refuses('no')() : confirms(generation);
    });
    const { exitCode, problems } = await cycleOn(test.host, 'poll', stop.signal);
    assert.deepEqual([exitCode, problems[0]?.code], [5, 'WORKER_REFUSED']);
    assert.deepEqual(
      test.host.refusals.read().refusals.map(({ code }) => code),
      ['WORKER_REFUSED'],
    );
  });
});

// Recorded refusals of releases: by digest, with reason and time, reported at every later cycle, and tried again after their
// time, after a boot, with another configuration and by force. A fault of the host is not recorded.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rememberRefusedBundles } from '../../../src/agent/select/select-releases.js';
import type { Selection } from '../../../src/agent/select/selection.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import { configDigest } from '../../../src/core/config/config-digest.js';
import { outcomeOf, problemOf } from '../../../src/core/cycle/problem.js';
import { type ErrorCode, errorCodes } from '../../../src/core/error-codes.js';
import { WritError } from '../../../src/core/errors.js';
import { cycleOn } from '../../kit/agent/cycle-on.js';
import { publishNext } from '../../kit/assert/fault-table.js';
import { setLedger } from '../../kit/host/set-ledger.js';
import { type TestHost, type TestHostOptions, testHost } from '../../kit/host/test-host.js';
import { refuses, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const check = (program: string): TestHostOptions => ({
  bundles: [{ name: 'access', checks: [{ kind: 'run', name: 'judge', run: [program], timeoutMs: 60_000 }] }],
});

/** Serial 6 was refused by its check. */
async function refusedHost(): Promise<TestHost> {
  const test = testHost(check('false'));
  await publishNext(test, 6);
  await start(test.host);
  assert.deepEqual(
    (await test.pull()).problems.map((one) => one.code),
    ['CHECK_FAILED'],
  );
  return test;
}

async function start(host: Host): Promise<Host> {
  await startHost(host, { cycle: 'c-start', signal: new AbortController().signal });
  return host;
}

async function codesOf(host: Host, how: 'poll' | 'force' = 'poll'): Promise<string> {
  const { problems } = await cycleOn(host, how);
  return problems.map((one) => one.code).join();
}

describe('a refused release', () => {
  it('is recorded with digest, code, reason and time', async () => {
    using test = await refusedHost();
    const [known, ...others] = test.host.refusals.read().refusals;
    assert.deepEqual(others, []);
    assert.deepEqual(
      [known?.bundle, known?.serial, known?.code, known?.atMs, known?.tries],
      ['access', 6, 'CHECK_FAILED', test.clock.nowMs(), 1],
    );
    assert.match(known?.message ?? '', /judge/);
    assert.match(known?.manifestDigest ?? '', /^sha256:/);
  });

  it('is reported at every cycle without a write, and after a restart of the agent too', async () => {
    using test = await refusedHost();
    const before = JSON.stringify(test.host.refusals.read());
    assert.equal(await codesOf(test.host), 'REMEMBERED_REFUSAL');
    const restarted = await start(test.reopen());
    assert.equal(await codesOf(restarted), 'REMEMBERED_REFUSAL');
    assert.equal(JSON.stringify(restarted.refusals.read()), before);
  });

  it('is tried again after a boot', async () => {
    using test = await refusedHost();
    const booted = test.reopen();
    setLedger(booted.ledger, { verifiedBootId: 'another boot' });
    assert.equal(await codesOf(await start(booted)), 'CHECK_FAILED');
    assert.equal(booted.refusals.read().refusals[0]?.tries, 2);
  });

  it('is tried again when the agent starts under another configuration', async () => {
    using test = await refusedHost();
    assert.equal(await codesOf(await start(test.reopen(check('true')))), '');
    assert.deepEqual(test.reopen().refusals.read().refusals, [], 'active, and so refused no more');
  });

  it('is tried again in a forced pull, and counted', async () => {
    using test = await refusedHost();
    assert.equal(await codesOf(test.host, 'force'), 'CHECK_FAILED');
    assert.equal(test.host.refusals.read().refusals[0]?.tries, 2);
  });

  it('by its age is judged at every poll and not recorded, because a withdrawal may permit it', async () => {
    using test = testHost();
    await publishNext(test, 7);
    await test.pull();
    await publishNext(test, 6);
    for (const _ of [1, 2]) {
      const result = await test.pull();
      assert.deepEqual([result.outcome, result.problems[0]?.code], ['rejected', 'SERIAL_ROLLBACK']);
    }
    assert.deepEqual(test.host.refusals.read().refusals, []);
    await test.publish('access', { 'policy.yaml': 'version: 6\n' }, { serial: 6, withdrawn: [7] });
    assert.equal((await test.pull()).outcome, 'activated');
  });
});

describe('a code', () => {
  it('is recorded against a release only where it is a verdict on it', async () => {
    using test = await refusedHost();
    const [known] = test.host.refusals.read().refusals;
    const found = await test.host.client.target('access', 'stable', {});
    for (const code of Object.keys(errorCodes) as ErrorCode[]) {
      test.host.refusals.write({ writ: 1, refusals: [] });
      const error = new WritError(code, 'x');
      const result = {
        bundle: 'access',
        channel: 'stable',
        outcome: outcomeOf(error),
        problem: problemOf(error),
      };
      const [bundle] = test.host.config.bundles;
      const selection = { kind: 'keep', bundle, result, offered: found?.release } as Selection;
      rememberRefusedBundles(test.host, [selection]);
      const kept = test.host.refusals.read().refusals.map((one) => one.manifestDigest);
      assert.deepEqual(kept, errorCodes[code].kind === 'rejected' ? [known?.manifestDigest] : [], code);
    }
  });
});

describe('a refusal that names a fault of the host', () => {
  const minuteMs = 60_000;
  const line = 'nginx: [emerg] host not found in upstream "app.internal"';

  /** @returns minutes until each of five tries is repeated */
  async function waits(options: TestHostOptions, code: ErrorCode): Promise<number[]> {
    using test = testHost(options);
    await test.publish('access', { policy: '1' }, { serial: 1 });
    const minutes: number[] = [];
    for (let tries = 0; tries < 5; tries++) {
      const result = await test.pull();
      assert.equal(result.problems[0]?.code, code);
      const [known] = test.host.refusals.read().refusals;
      const waitMs = (known?.retryAtMs ?? 0) - test.host.clock.nowMs();
      minutes.push(Math.round(waitMs / minuteMs));
      await test.clock.advance(waitMs);
    }
    return minutes;
  }

  it('of a check is tried again after 1, 2, 4 and 8 minutes', async () => {
    const run = ['sh', '-c', `echo progress; echo '${line}' >&2; exit 1`] as const;
    const checks = [{ kind: 'run', name: 'nginx', run, timeoutMs: minuteMs }] as const;
    const found = await waits({ bundles: [{ name: 'access', checks }] }, 'CHECK_FAILED');
    assert.deepEqual(found, [1, 2, 4, 8, 60]);
  });

  it('of a loader, and of a worker, is too', async () => {
    const load = {
      run: ['sh', '-c', 'echo "cp: /x: Read-only file system" >&2; exit 1'],
      timeoutMs: minuteMs,
    } as const;
    assert.deepEqual(
      await waits({ groups: { app: { config: { load } } } }, 'LOADER_FAILED'),
      [1, 2, 4, 8, 60],
    );
    const driver = scriptedDriver({ a: refuses('exit 1: open /x: Permission denied') });
    assert.deepEqual(await waits({ groups: { app: { driver } } }, 'WORKER_REFUSED'), [1, 2, 4, 8, 60]);
  });

  it('in a later line alone waits as any other refusal does', async () => {
    const run = ['sh', '-c', `echo 'block.rpz:3: bad' >&2; echo '${line}' >&2; exit 1`] as const;
    const checks = [{ kind: 'run', name: 'nginx', run, timeoutMs: minuteMs }] as const;
    const found = await waits({ bundles: [{ name: 'access', checks }] }, 'CHECK_FAILED');
    assert.deepEqual(found.slice(0, 2), [60, 120]);
  });
});

describe('#configDigest', () => {
  it('differs for configurations with other values, and not for another order of keys', () => {
    using test = testHost();
    const { config } = test.host;
    const turned = Object.fromEntries(Object.entries(config).reverse()) as unknown as typeof config;
    assert.equal(configDigest(turned), configDigest(config));
    assert.notEqual(configDigest({ ...config, untrusted: 'rollback' }), configDigest(config));
    assert.match(configDigest(config), /^sha256:[0-9a-f]{64}$/);
  });
});

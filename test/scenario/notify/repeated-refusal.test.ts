// A busy worker, or a loader that cannot write, refuses every generation, also the one that it accepted before. The host restores
// that generation without a block, records no refusal of the release, and retries it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { loadAtBoot } from '../../../src/agent/notify/boot-loaders.js';
import type { HookConfig } from '../../../src/core/config/config.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { command } from '../../../src/workers/drivers/command.js';
import { http } from '../../../src/workers/drivers/http.js';
import { line } from '../../../src/workers/drivers/line.js';
import { settleNow } from '../../kit/agent/settle-now.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { driverContext } from '../../kit/workers/driver-context.js';
import { startFakeHttpWorker } from '../../kit/workers/fake-http-worker.js';
import { startFakeLineServer } from '../../kit/workers/fake-line-server.js';
import { confirms, refuses, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';

const minuteMs = 60_000;
const accepts = (): Answer => ({ kind: 'notified', text: 'ok' });
const busy = (generation: number): Answer =>
  refuses(`NOK busy: load of /run/p/${generation}/x is in progress (${generation} s)`)();

const publish = (test: TestHost, serial: number, more = {}) =>
  test.publish('access', { 'policy.yaml': `v${serial}` }, { serial, ...more });

const ends = ({ outcome, exitCode, generation, problems: [first] }: CycleResult) => [
  ...[outcome, exitCode, generation, first?.code],
];
const nothingRemembered = ({ host }: TestHost): void => {
  assert.deepEqual(host.refusals.read().refusals, [], 'no verdict is remembered');
  assert.equal(host.ledger.read().blocked, undefined, 'nothing is blocked');
};

interface Scene {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
}

/** Generation 1 is in use; the worker only accepts, and is busy after that. */
async function scene(first: (generation: number) => Answer = accepts): Promise<Scene> {
  const driver = scriptedDriver({ a: first }, first === accepts ? 'early' : 'true');
  const test = testHost({ groups: { app: { driver } } });
  await publish(test, 1);
  await test.pull();
  driver.workers.set('a', busy);
  return { test, driver };
}

describe('a busy worker', () => {
  it('causes a restore without a block or a recorded refusal, and accepts the release a minute later', async () => {
    const { test, driver } = await scene();
    using _ = test;
    await publish(test, 2);
    const result = await test.pull();
    assert.deepEqual(ends(result), ['rolled-back', 5, 1, 'REFUSAL_REPEATED']);
    assert.equal(result.problems[0]?.facts['refusedFor'], 'WORKER_REFUSED');
    nothingRemembered(test);
    driver.workers.set('a', accepts);
    assert.deepEqual(ends(await test.pull()), ['degraded', 4, 1, 'REFUSAL_REPEATED'], 'not before its time');
    await test.clock.advance(minuteMs);
    assert.deepEqual(ends(await test.pull()), ['activated', 4, 3, undefined]);
    assert.equal(test.host.ledger.read().waiting, undefined);
  });

  it('that accepted the new release causes a restore without a block, because it accepted the previous release too', async () => {
    const driver = scriptedDriver({ a: confirms, b: confirms });
    using test = testHost({ groups: { app: { driver, config: { rolling: 1 } } } });
    await publish(test, 1);
    await test.pull();
    driver.workers.set('a', (generation) => (generation === 2 ? confirms(2) : busy(generation)));
    driver.workers.set('b', busy);
    await publish(test, 2);
    assert.deepEqual(ends(await test.pull()), ['rolled-back', 5, 1, 'REFUSAL_REPEATED']);
    nothingRemembered(test);
  });

  it('is notified again with a growing backoff, and refuses no release while it is busy', async () => {
    const { test, driver } = await scene();
    using _ = test;
    await publish(test, 2);
    await test.pull();
    for (const waitMs of [5000, 10_000, 20_000]) {
      const before = driver.notified.length;
      await test.clock.advance(waitMs - 1000);
      await settleNow(test.host, { ignoreBackoff: false });
      assert.equal(driver.notified.length, before, `not before ${waitMs} ms`);
      await test.clock.advance(1000);
      const { problems } = await settleNow(test.host, { ignoreBackoff: false });
      assert.deepEqual([problems[0]?.code, driver.notified.at(-1)], ['WORKER_UNREACHABLE', 'a 1']);
    }
    driver.workers.set('a', accepts);
    await test.clock.advance(40_000);
    assert.deepEqual((await settleNow(test.host, { ignoreBackoff: false })).problems, []);
  });

  it(
    'causes five attempts of the release, after 1, 2, 4 and 8 minutes, and then none',
    longCase,
    async () => {
      const { test, driver } = await scene(confirms);
      using _ = test;
      await publish(test, 2);
      await test.pull();
      for (const minutes of [1, 2, 4, 8]) {
        await test.clock.advance(minutes * minuteMs - 1);
        assert.equal((await test.pull()).outcome, 'degraded', `not before ${minutes} min`);
        await test.clock.advance(1);
        assert.equal((await test.pull()).outcome, 'rolled-back');
      }
      driver.workers.set('a', confirms);
      await test.clock.advance(48 * 60 * minuteMs);
      assert.deepEqual(ends(await test.pull()), ['degraded', 4, 1, 'REFUSAL_REPEATED']);
      assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
    },
  );

  it('blocks the host if it refuses the previous generation with another text', async () => {
    const { test, driver } = await scene();
    using _ = test;
    driver.workers.set('a', (n) => refuses(n === 1 ? 'out of memory' : 'bad syntax')());
    await publish(test, 2);
    assert.equal((await test.pull()).outcome, 'blocked');
    assert.equal(test.host.refusals.read().refusals.length, 1);
    driver.workers.set('a', accepts);
    await publish(test, 3);
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'activated');
    assert.equal(test.host.ledger.read().blocked, undefined, 'the block ends with what is active');
  });

  it('blocks the host if it accepted no generation before', async () => {
    const driver = scriptedDriver({ a: () => ({ kind: 'unreachable', text: 'ECONNREFUSED' }) });
    using test = testHost({ groups: { app: { driver } } });
    await publish(test, 1);
    await test.pull();
    driver.workers.set('a', busy);
    await publish(test, 2);
    assert.equal((await test.pull()).outcome, 'blocked');
  });

  it('blocks the host if it accepted only an older release that differs from the previous generation', async () => {
    const { test, driver } = await scene();
    using _ = test;
    let newest = 0;
    driver.workers.set('a', (n) => {
      newest = Math.max(newest, n);
      return newest < 3 ? { kind: 'unreachable', text: 'ECONNREFUSED' } : busy(n);
    });
    await publish(test, 2);
    assert.equal((await test.pull()).exitCode, 4);
    await publish(test, 3);
    assert.equal((await test.pull()).outcome, 'blocked');
  });

  it('causes the refusal of a release if it refuses only that one', async () => {
    const { test, driver } = await scene();
    using _ = test;
    driver.workers.set('a', (n) => (n === 1 ? accepts() : busy(n)));
    await publish(test, 2);
    assert.deepEqual(ends(await test.pull()), ['rolled-back', 5, 1, 'WORKER_REFUSED']);
    assert.equal(test.host.refusals.read().refusals.length, 1);
  });

  it('that was unreachable at the move refuses late, and causes a rollback without a block', async () => {
    const { test, driver } = await scene();
    using _ = test;
    driver.workers.set('a', () => ({ kind: 'unreachable', text: 'ECONNREFUSED' }));
    await publish(test, 2);
    assert.equal((await test.pull()).exitCode, 4);
    driver.workers.set('a', busy);
    assert.deepEqual(ends(await test.pull()), ['rolled-back', 5, 1, 'REFUSAL_REPEATED']);
    nothingRemembered(test);
  });

  it('does not remove an earlier recorded refusal of the release', async () => {
    const { test, driver } = await scene();
    using _ = test;
    driver.workers.set('a', (n) => (n === 1 ? accepts() : refuses('bad syntax')()));
    await publish(test, 2);
    await test.pull();
    const [before] = test.host.refusals.read().refusals;
    driver.workers.set('a', busy);
    await test.clock.advance(60 * minuteMs);
    assert.deepEqual(ends(await test.pull()), ['rolled-back', 5, 1, 'REFUSAL_REPEATED']);
    assert.deepEqual(test.host.refusals.read().refusals, [before]);
  });
});

describe('a withdrawal with a busy worker', () => {
  it('is not refused: the host is not blocked, and moves away once the worker is free', async () => {
    const { test, driver } = await scene();
    using _ = test;
    driver.workers.set('a', accepts);
    await publish(test, 2);
    await test.pull();
    driver.workers.set('a', busy);
    await publish(test, 1, { withdrawn: [2] });
    assert.deepEqual(ends(await test.pull()), ['rolled-back', 5, 2, 'REFUSAL_REPEATED']);
    nothingRemembered(test);
    driver.workers.set('a', accepts);
    assert.equal((await test.pull()).outcome, 'activated', 'each poll tries it');
    assert.equal(test.read('access/policy.yaml'), 'v1');
  });
});

describe('each kind of driver without a deferral of its own', () => {
  it('line: an answer that is not the expected one', async () => {
    using dir = tempDir();
    let answer = 'ok';
    const daemon = await startFakeLineServer(dir.join('d.sock'), { habit: 'unbound', answer: () => answer });
    try {
      const options = { line: dir.join('d.sock'), send: 'load {current}', expect: 'ok' };
      await meetsBusy(line.create(options, driverContext()), () => {
        answer = 'NOK busy: reload in progress';
      });
    } finally {
      await daemon.close();
    }
  });

  it('http: a status of a fault, with words', async () => {
    let status = 200;
    const daemon = await startFakeHttpWorker(() => ({ status, body: 'reload in progress' }));
    try {
      await meetsBusy(http.create({ http: `${daemon.url}/reload` }, driverContext()), () => {
        status = 500;
      });
    } finally {
      await daemon.close();
    }
  });

  it('run: an exit code of a refusal, with words', async () => {
    using dir = tempDir();
    const script = `test -e ${dir.join('busy')} || exit 0; echo error: reload already in progress >&2; exit 1`;
    await meetsBusy(command.create({ run: ['sh', '-c', script] }, driverContext()), () =>
      fs.writeFileSync(dir.join('busy'), ''),
    );
  });
});

async function meetsBusy(driver: ReturnType<typeof line.create>, makeBusy: () => void): Promise<void> {
  using test = testHost({ groups: { app: { driver } } });
  await publish(test, 1);
  assert.equal((await test.pull()).outcome, 'activated');
  makeBusy();
  await publish(test, 2);
  assert.deepEqual(ends(await test.pull()), ['rolled-back', 5, 1, 'REFUSAL_REPEATED']);
  nothingRemembered(test);
}

describe('a loader that cannot write', () => {
  const loaderState = ({ host }: TestHost) => host.ledger.read().workers['files/load']?.state;
  const load = (script: string): HookConfig => ({
    run: ['sh', '-c', script],
    timeoutMs: 5000,
  });

  it('causes a restore without a block, and a retry of both generations', async () => {
    using dir = tempDir();
    const broken = dir.join('read-only');
    const script = `test -e ${broken} && { echo "cp: cannot create '{current}/x': Read-only file system" >&2; exit 1; }; cat {bundle}/policy.yaml > ${dir.join('out')}`;
    using test = testHost({ groups: { files: { config: { load: load(script) } } } });
    await publish(test, 1);
    await test.pull();
    fs.writeFileSync(broken, '');
    await publish(test, 2);
    const result = await test.pull();
    assert.deepEqual(ends(result), ['rolled-back', 5, 1, 'REFUSAL_REPEATED']);
    assert.equal(result.problems[0]?.facts['refusedFor'], 'LOADER_FAILED');
    nothingRemembered(test);
    assert.equal(test.host.ledger.read().loadPending, true);
    assert.deepEqual(
      [result.confirmed, loaderState(test)],
      [false, 'unreachable'],
      'it did not load the old one',
    );
    fs.rmSync(broken);
    const options = { cycle: 'c-1', signal: new AbortController().signal };
    assert.equal(await loadAtBoot(test.host, options), undefined);
    assert.equal(test.host.ledger.read().loadPending, undefined);
    await settleNow(test.host);
    assert.equal(loaderState(test), 'confirmed');
    await test.clock.advance(minuteMs);
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(fs.readFileSync(dir.join('out'), 'utf8'), 'v2');
  });

  it('and gives no verdict causes no block either', async () => {
    using dir = tempDir();
    const script = `test -e ${dir.join('gone')} && exit 127; exit 0`;
    using test = testHost({ groups: { files: { config: { load: load(script) } } } });
    await publish(test, 1);
    await test.pull();
    fs.writeFileSync(dir.join('gone'), '');
    await publish(test, 2);
    assert.deepEqual(ends(await test.pull()), ['failed', 1, 1, 'LOADER_BROKEN']);
    nothingRemembered(test);
    assert.equal(test.host.ledger.read().loadPending, true);
    assert.equal(loaderState(test), 'unreachable');
  });

  it('and defers has not loaded the restored generation', async () => {
    using dir = tempDir();
    const script = `test -e ${dir.join('busy')} && exit 75; exit 0`;
    using test = testHost({ groups: { files: { config: { load: load(script) } } } });
    await publish(test, 1);
    await test.pull();
    assert.equal(loaderState(test), 'confirmed');
    fs.writeFileSync(dir.join('busy'), '');
    await publish(test, 2);
    const { generation, confirmed } = await test.pull();
    assert.deepEqual([generation, confirmed, loaderState(test)], [1, false, 'unreachable']);
  });

  it('and defers the restore after it refused a release causes no block', async () => {
    const script = `grep -q v1 {bundle}/policy.yaml && test -e {current}/../2 && exit 75; grep -q v1 {bundle}/policy.yaml`;
    using test = testHost({ groups: { files: { config: { load: load(script) } } } });
    await publish(test, 1);
    await test.pull();
    await publish(test, 2);
    const result = await test.pull();
    assert.deepEqual(ends(result), ['rolled-back', 5, 1, 'LOADER_FAILED']);
    assert.deepEqual([loaderState(test), test.host.ledger.read().loadPending], ['unreachable', true]);
  });

  it('blocks the host if it fails during the restore with another text', async () => {
    const script = `grep -q v1 {bundle}/policy.yaml && test -e {current}/../2 && { echo File exists; exit 1; }; grep -q v1 {bundle}/policy.yaml`;
    using test = testHost({ groups: { files: { config: { load: load(script) } } } });
    await publish(test, 1);
    await test.pull();
    await publish(test, 2);
    assert.equal((await test.pull()).outcome, 'blocked');
  });
});

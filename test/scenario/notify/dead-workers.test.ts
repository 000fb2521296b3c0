// Workers that die of a policy, or refuse the one before it: noticed before the commit, and brought back where asked.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../src/core/errors.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { current, files, scene } from '../../kit/host/restart-scene.js';
import { type LivingDriver, livingDriver, notified } from '../../kit/workers/living-workers.js';
import { confirms, refuses, unreachable } from '../../kit/workers/scripted-driver.js';

describe('a worker that dies of the new policy', () => {
  /** Dies in its answer to generation 2, or after it. */
  const mortal = (
    answer: (generation: number) => Answer,
    verdictClass: 'true' | 'early' = 'true',
  ): LivingDriver => {
    const driver: LivingDriver = livingDriver(
      {
        a: (generation) => {
          if (generation === 2) driver.dead.add('a');
          return answer(generation);
        },
      },
      { verdictClass },
    );
    return driver;
  };

  for (const [what, answer, verdictClass] of [
    ['after it confirmed', confirms, 'true'],
    ['after it said "ok"', notified, 'early'],
    ['without a word', (n: number) => (n === 2 ? unreachable() : confirms(n)), 'true'],
  ] as const) {
    it(`${what} is noticed: never activated`, async () => {
      const { test, next } = await scene(mortal(answer, verdictClass), {});
      using _ = test;
      const { exitCode, code } = await next(2, 1);
      assert.deepEqual([exitCode, code], [5, 'WORKER_DIED']);
      assert.equal(current(test), 'generations/1');
      assert.equal(test.host.refusals.read().refusals[0]?.code, 'WORKER_DIED');
    });
  }

  it('a moment after its answer is noticed before the commit', async () => {
    const driver = livingDriver({ a: notified }, { verdictClass: 'early' });
    const { test, next } = await scene(driver, {});
    using _ = test;
    const sleep = test.clock.sleep.bind(test.clock);
    Object.assign(test.clock, {
      sleep: (ms: number, signal?: AbortSignal) => {
        if (driver.notified.at(-1) === 'a 2') driver.dead.add('a');
        return sleep(ms, signal);
      },
    });
    assert.deepEqual((await next(2, 1)).code, 'WORKER_DIED');
  });

  it('a moment after it confirmed is noticed before the commit', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms }), {});
    using _ = test;
    let looks = 0;
    driver.liveness = async () => {
      if (driver.notified.at(-1) === 'a 2') looks += 1;
      return looks < 2 ? 'alive' : 'dead';
    };
    const { exitCode, code } = await next(2, 1);
    assert.deepEqual([exitCode, code], [5, 'WORKER_DIED']);
  });

  it("is not the policy's fault when it was dead before", async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms }), {});
    using _ = test;
    driver.dead.add('a');
    const { exitCode, code } = await next(2, 1);
    assert.deepEqual([exitCode, code], [4, 'WORKERS_MISSING']);
    assert.equal(current(test), 'generations/2');
  });

  it("is not the policy's fault when nobody could say before whether it lived", async () => {
    const driver = livingDriver({ a: confirms });
    const { test, next } = await scene(driver, {});
    using _ = test;
    driver.liveness = async () => {
      if (driver.notified.length === 0) throw new WritError('WORKER_UNREACHABLE', 'its manager is away');
      return 'dead';
    };
    const { exitCode, code } = await next(2, 1);
    assert.deepEqual([exitCode, code], [4, 'WORKERS_MISSING']);
    assert.equal(current(test), 'generations/2');
  });

  it('is reported when the way back leaves it dead', async () => {
    const { test } = await scene(mortal(confirms), { onDead: 'report' });
    using _ = test;
    await test.publish('access', files(2, 1), { serial: 2 });
    const result = await test.pull();
    assert.deepEqual(
      [result.outcome, result.problems.map((one) => one.code)],
      ['rolled-back', ['WORKER_DIED', 'WORKERS_MISSING']],
    );
    assert.equal(result.workers[0]?.state, 'unreachable');
  });

  it('is started again where `onDead` says so', async () => {
    const { test, next } = await scene(mortal(confirms), { onDead: 'restart' });
    using _ = test;
    const { exitCode, notified: tells } = await next(2, 1);
    assert.deepEqual([exitCode, tells], [5, ['a 2', 'a 1', 'restart a 1']]);
  });

  it('and is not even listed any more is started again', async () => {
    const driver = mortal(confirms);
    const { test, next } = await scene(driver, { onDead: 'restart' });
    using _ = test;
    driver.members = async () => [...driver.workers.keys()].filter((one) => !driver.dead.has(one));
    const { exitCode, notified: tells } = await next(2, 1);
    assert.deepEqual([exitCode, tells], [5, ['a 2', 'a 1', 'restart a 1']]);
  });

  it('and cannot be started again blocks, loudly', async () => {
    const driver: LivingDriver = livingDriver(
      {
        a: (generation) => {
          if (generation === 2) driver.dead.add('a');
          return confirms(generation);
        },
      },
      {
        restarts: () => {
          driver.dead.add('a');
          return { kind: 'unreachable', text: 'FATAL Exited too quickly' };
        },
      },
    );
    const { test } = await scene(driver, { onDead: 'restart' });
    using _ = test;
    await test.publish('access', files(2, 1), { serial: 2 });
    const result = await test.pull();
    assert.equal(result.exitCode, 6);
    assert.deepEqual(
      result.problems.map((one) => one.code),
      ['ACTIVATION_BLOCKED', 'WORKER_DIED', 'WORKER_DIED'],
    );
    assert.match(test.host.ledger.read().blocked?.reason ?? '', /FATAL/);
    assert.equal(current(test), 'generations/1');
    assert.equal(test.host.ledger.read().workers['app/a']?.state, 'unreachable');
  });
});

describe('a worker that refuses what it has used before', () => {
  const refusesBoth = (): Answer => refuses('broken')();

  it('is started again where `onDead` says so', async () => {
    const driver = livingDriver({ a: confirms });
    const { test, next } = await scene(driver, { onDead: 'restart' });
    using _ = test;
    driver.workers.set('a', refusesBoth);
    const { exitCode, notified: tells } = await next(2, 1);
    assert.deepEqual([exitCode, tells], [5, ['a 2', 'a 1', 'restart a 1']]);
  });

  it('blocks where nobody may restart it, and its texts differ', async () => {
    const driver = livingDriver({ a: confirms });
    const { test, next } = await scene(driver, {});
    using _ = test;
    driver.workers.set('a', (n) => refuses(n === 1 ? 'broken' : 'bad syntax')());
    const { exitCode, notified: tells } = await next(2, 1);
    assert.deepEqual([exitCode, tells], [6, ['a 2', 'a 1']]);
  });
});

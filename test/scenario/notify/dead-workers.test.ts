// Workers that die of a policy, or refuse the previous one: detected before the commit, and restarted if configured.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../src/core/errors.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { current, files, scene } from '../../kit/host/restart-scene.js';
import { type LivingDriver, livingDriver, notified } from '../../kit/workers/living-workers.js';
import { confirms, refuses, unreachable } from '../../kit/workers/scripted-driver.js';

describe('a worker that dies of the new policy', () => {
  /** Dies while or after it answers for generation 2. */
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
    ['after it accepted', notified, 'early'],
    ['without an answer', (n: number) => (n === 2 ? unreachable() : confirms(n)), 'true'],
  ] as const) {
    it(`${what} causes a restore`, async () => {
      const { test, next } = await scene(mortal(answer, verdictClass), {});
      using _ = test;
      const { exitCode, code } = await next(2, 1);
      assert.deepEqual([exitCode, code], [5, 'WORKER_DIED']);
      assert.equal(current(test), 'generations/1');
      assert.equal(test.host.refusals.read().refusals[0]?.code, 'WORKER_DIED');
    });
  }

  it('a moment after its answer causes a restore before the commit', async () => {
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

  it('a moment after it confirmed causes a restore before the commit', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms }), {});
    using _ = test;
    let checks = 0;
    driver.liveness = async () => {
      if (driver.notified.at(-1) === 'a 2') checks += 1;
      return checks < 2 ? 'alive' : 'dead';
    };
    const { exitCode, code } = await next(2, 1);
    assert.deepEqual([exitCode, code], [5, 'WORKER_DIED']);
  });

  it('causes no refusal if it was dead before', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms }), {});
    using _ = test;
    driver.dead.add('a');
    const { exitCode, code } = await next(2, 1);
    assert.deepEqual([exitCode, code], [4, 'WORKERS_MISSING']);
    assert.equal(current(test), 'generations/2');
  });

  it('causes no refusal if its liveness before the move is unknown', async () => {
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

  it('is reported if it is still dead after the restore', async () => {
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

  it('is restarted with `onDead: restart`', async () => {
    const { test, next } = await scene(mortal(confirms), { onDead: 'restart' });
    using _ = test;
    const { exitCode, notified } = await next(2, 1);
    assert.deepEqual([exitCode, notified], [5, ['a 2', 'a 1', 'restart a 1']]);
  });

  it('and is no longer listed is restarted', async () => {
    const driver = mortal(confirms);
    const { test, next } = await scene(driver, { onDead: 'restart' });
    using _ = test;
    driver.members = async () => [...driver.workers.keys()].filter((one) => !driver.dead.has(one));
    const { exitCode, notified } = await next(2, 1);
    assert.deepEqual([exitCode, notified], [5, ['a 2', 'a 1', 'restart a 1']]);
  });

  it('and cannot be restarted blocks the host', async () => {
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

describe('a worker that refuses the generation that it used before', () => {
  const refusesBoth = (): Answer => refuses('broken')();

  it('is restarted with `onDead: restart`', async () => {
    const driver = livingDriver({ a: confirms });
    const { test, next } = await scene(driver, { onDead: 'restart' });
    using _ = test;
    driver.workers.set('a', refusesBoth);
    const { exitCode, notified } = await next(2, 1);
    assert.deepEqual([exitCode, notified], [5, ['a 2', 'a 1', 'restart a 1']]);
  });

  it('blocks the host if it must not be restarted, and its texts differ', async () => {
    const driver = livingDriver({ a: confirms });
    const { test, next } = await scene(driver, {});
    using _ = test;
    driver.workers.set('a', (n) => refuses(n === 1 ? 'broken' : 'bad syntax')());
    const { exitCode, notified } = await next(2, 1);
    assert.deepEqual([exitCode, notified], [6, ['a 2', 'a 1']]);
  });
});

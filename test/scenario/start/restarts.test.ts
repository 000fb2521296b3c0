// Resets and restarts by the changed files, and the proof of a restart.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { settleNow } from '../../kit/agent/settle-now.js';
import { current, files, scene } from '../../kit/host/restart-scene.js';
import { type LivingDriver, livingDriver, notified } from '../../kit/workers/living-workers.js';
import { confirms } from '../../kit/workers/scripted-driver.js';

describe('when', () => {
  it('selects the verb: rules cause a reset, and configuration a restart, one at a time', async () => {
    const { test, next } = await scene(livingDriver({ a: confirms, b: confirms }));
    using _ = test;
    assert.deepEqual((await next(2, 1)).notified, ['a 2', 'b 2']);
    assert.deepEqual((await next(2, 2)).notified, ['restart a 3', 'restart b 3']);
    assert.deepEqual((await next(3, 3)).notified, ['restart a 4', 'restart b 4']);
  });

  it('skips a group without a change', async () => {
    const { test, driver } = await scene(livingDriver({ a: confirms }));
    using _ = test;
    driver.notified.length = 0;
    await test.publish('access', { ...files(1, 1), README: 'new' }, { serial: 2 });
    const result = await test.pull();
    assert.deepEqual([result.outcome, driver.notified], ['activated', []]);
  });

  it('resets for any other change where only `restart` is configured', async () => {
    const { test, driver } = await scene(livingDriver({ a: confirms }), {
      when: [],
      restartWhen: ['worker.conf'],
    });
    using _ = test;
    driver.notified.length = 0;
    await test.publish('access', { ...files(1, 1), README: 'new' }, { serial: 2 });
    await test.pull();
    assert.deepEqual(driver.notified, ['a 2']);
  });

  it('counts from the generation that a worker used last: one that missed a configuration is restarted later', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms, b: confirms }));
    using _ = test;
    driver.dead.add('b');
    assert.deepEqual((await next(1, 2)).notified, ['restart a 2']);
    driver.dead.delete('b');
    assert.deepEqual((await next(2, 2)).notified, ['a 3', 'restart b 3']);
    assert.deepEqual((await next(3, 2)).notified, ['a 4', 'b 4']);
  });

  it('applies to a notification outside a cycle too', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms, b: confirms }));
    using _ = test;
    driver.dead.add('b');
    assert.deepEqual((await next(1, 2)).code, 'WORKERS_MISSING');
    driver.dead.delete('b');
    driver.notified.length = 0;
    await settleNow(test.host);
    assert.deepEqual(driver.notified, ['restart b 2']);
  });

  it('does not restart a worker that does not run: it is pending, and reads the policy when it starts', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms }));
    using _ = test;
    driver.dead.add('a');
    const { exitCode, notified: tells } = await next(1, 2);
    assert.deepEqual([exitCode, tells], [4, []]);
  });
});

describe('a pending restart', () => {
  /** Workers that do not answer a restart with these generations; whether they run is unknown. */
  const blind = (unanswered: Set<string>): LivingDriver => {
    const driver = livingDriver(
      { a: confirms, b: confirms },
      {
        restarts: (worker, generation) => {
          if (unanswered.has(`${worker} ${generation}`)) return { kind: 'unreachable', text: 'no answer' };
          return worker === 'b' && generation === 3 ? { kind: 'refused', text: 'no' } : notified();
        },
      },
    );
    return Object.assign(driver, { liveness: async () => 'unknown' as const });
  };

  it('for a restore is not dropped with the replaced generation', async () => {
    const unanswered = new Set(['a 2']);
    const { test, driver, next } = await scene(blind(unanswered));
    using _ = test;
    assert.deepEqual((await next(2, 1)).notified, ['a 2', 'b 2']);
    const { exitCode, notified: tells } = await next(2, 2);
    assert.deepEqual([exitCode, tells], [5, ['restart a 3', 'restart b 3', 'restart a 2']]);
    unanswered.clear();
    driver.notified.length = 0;
    await settleNow(test.host);
    assert.deepEqual(driver.notified, ['restart a 2', 'restart b 2']);
    assert.equal((await next(3, 1)).exitCode, 0);
    assert.deepEqual(driver.notified, ['a 4', 'b 4'], 'once it is answered nothing is owed');
  });

  it('is not repeated in its cycle, with any `retry` of its group', async () => {
    const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 0, retry: 2 };
    const { test, next } = await scene(blind(new Set(['a 2'])), { reset, restartWhen: ['worker.conf'] });
    using _ = test;
    assert.deepEqual((await next(1, 2)).notified, ['restart a 2']);
  });

  it('for a generation without a proof is not dropped with the next one', async () => {
    const unanswered = new Set<string>();
    const { test, driver, next } = await scene(blind(unanswered));
    using _ = test;
    driver.workers.delete('b');
    assert.deepEqual((await next(2, 1)).notified, ['a 2']);
    assert.deepEqual((await next(2, 2)).notified, ['restart a 3']);
    unanswered.add('a 4');
    const { exitCode, notified: tells } = await next(3, 1);
    assert.deepEqual([exitCode, tells], [4, ['restart a 4']]);
    unanswered.clear();
    driver.notified.length = 0;
    await settleNow(test.reopen());
    assert.deepEqual(driver.notified, ['restart a 4']);
  });
});

describe('a restart', () => {
  const comesUp = (
    answer: (generation: number) => Answer,
    dies: 'dies' | 'lives',
    name = 'a',
  ): LivingDriver => {
    const driver: LivingDriver = livingDriver(
      { a: confirms, b: confirms },
      {
        restarts: (worker, generation) => {
          if (worker !== name || generation !== 2) return notified();
          if (dies === 'dies') driver.dead.add(worker);
          return answer(generation);
        },
      },
    );
    return driver;
  };
  const away = (): Answer => ({ kind: 'unreachable', text: 'FATAL' });

  it('of a worker that does not start again is a refusal: the next worker is not restarted, and the earlier ones are restarted again', async () => {
    const { test, next } = await scene(comesUp(away, 'dies'));
    using _ = test;
    const { exitCode, code, notified: tells } = await next(1, 2);
    assert.deepEqual([exitCode, code], [5, 'WORKER_DIED']);
    assert.deepEqual(tells, ['restart a 2', 'restart a 1']);
    assert.equal(current(test), 'generations/1');
  });

  it('of a worker that runs and is not ready is a refusal too', async () => {
    const { test, next } = await scene(comesUp(away, 'lives'));
    using _ = test;
    assert.deepEqual((await next(1, 2)).code, 'WORKER_DIED');
  });

  it('is a notification at best, because a process that runs has proved nothing', async () => {
    const { test } = await scene(livingDriver({ a: confirms }, { restarts: (_, n) => confirms(n) }));
    using _ = test;
    await test.publish('access', files(1, 2), { serial: 2 });
    const result = await test.pull();
    assert.deepEqual(
      [result.outcome, result.confirmed, result.workers[0]?.state],
      ['activated', false, 'notified'],
    );
  });
});

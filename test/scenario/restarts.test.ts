import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createWorkerGroups } from '../../src/agent/worker-groups.js';
import type { WorkerGroupConfig } from '../../src/core/config.js';
import { isWritError } from '../../src/core/errors.js';
import { createDurableFs } from '../../src/platform/durable-fs.js';
import { silentLog } from '../../src/platform/log.js';
import type { Answer } from '../../src/workers/driver.js';
import { fakeClock } from '../support/fake-clock.js';
import { type LivingDriver, livingDriver, told } from '../support/living-workers.js';
import { confirms, refuses, scriptedDriver, unreachable } from '../support/scripted-driver.js';
import { settleNow } from '../support/settle-now.js';
import { type TestHost, testHost } from '../support/test-host.js';

const current = (test: TestHost): string => fs.readlinkSync(test.host.paths.current);
const files = (rules: number, conf: number) => ({ 'rules/a': `${rules}`, 'worker.conf': `${conf}` });
const byConfig = { when: ['rules/**'], restartWhen: ['worker.conf'] };

interface Scene {
  readonly test: TestHost;
  readonly driver: LivingDriver;
  /** Publishes the next release with these versions, pulls, and says what was told. */
  next(rules: number, conf: number): Promise<{ exitCode: number; code: string | undefined; told: string[] }>;
}

async function scene(driver: LivingDriver, config: Partial<WorkerGroupConfig> = byConfig): Promise<Scene> {
  const test = testHost({ groups: { app: { driver, config } } });
  let serial = 1;
  await test.publish('access', files(1, 1), { serial });
  assert.equal((await test.pull()).exitCode, 0);
  return {
    test,
    driver,
    next: async (rules, conf) => {
      serial += 1;
      driver.told.length = 0;
      await test.publish('access', files(rules, conf), { serial });
      const { exitCode, problems } = await test.pull();
      return { exitCode, code: problems[0]?.code, told: [...driver.told] };
    },
  };
}

describe('when', () => {
  it('says how: rules are reset, configuration is restarted, one at a time', async () => {
    const { test, next } = await scene(livingDriver({ a: confirms, b: confirms }));
    using _ = test;
    assert.deepEqual((await next(2, 1)).told, ['a 2', 'b 2']);
    assert.deepEqual((await next(2, 2)).told, ['restart a 3', 'restart b 3']);
    assert.deepEqual((await next(3, 3)).told, ['restart a 4', 'restart b 4']);
  });

  it('passes over a group of which nothing has changed', async () => {
    const { test, driver } = await scene(livingDriver({ a: confirms }));
    using _ = test;
    driver.told.length = 0;
    await test.publish('access', { ...files(1, 1), README: 'new' }, { serial: 2 });
    const result = await test.pull();
    assert.deepEqual([result.outcome, driver.told], ['activated', []]);
  });

  it('resets for any other change where only `restart` is said', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms }), {
      when: [],
      restartWhen: ['worker.conf'],
    });
    using _ = test;
    driver.told.length = 0;
    await test.publish('access', { ...files(1, 1), README: 'new' }, { serial: 2 });
    await test.pull();
    assert.deepEqual(driver.told, ['a 2']);
    assert.equal((await next(1, 1)).exitCode, 3, 'the serial is not new');
  });

  it('counts from what a worker used last: one that missed a configuration is restarted later', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms, b: confirms }));
    using _ = test;
    driver.dead.add('b');
    assert.deepEqual((await next(1, 2)).told, ['restart a 2']);
    driver.dead.delete('b');
    assert.deepEqual((await next(2, 2)).told, ['a 3', 'restart b 3']);
    assert.deepEqual((await next(3, 2)).told, ['a 4', 'b 4']);
  });

  it('holds for a tell apart from the cycle too', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms, b: confirms }));
    using _ = test;
    driver.dead.add('b');
    assert.deepEqual((await next(1, 2)).code, 'WORKER_UNREACHABLE');
    driver.dead.delete('b');
    driver.told.length = 0;
    await settleNow(test.host);
    assert.deepEqual(driver.told, ['restart b 2']);
  });

  it('restarts nobody who does not run: it is due, and reads the policy when it starts', async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms }));
    using _ = test;
    driver.dead.add('a');
    const { exitCode, told: tells } = await next(1, 2);
    assert.deepEqual([exitCode, tells], [4, []]);
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
          if (worker !== name || generation !== 2) return told();
          if (dies === 'dies') driver.dead.add(worker);
          return answer(generation);
        },
      },
    );
    return driver;
  };
  const away = (): Answer => ({ kind: 'unreachable', text: 'FATAL' });

  it('that does not come up is a no: the next one keeps serving, and who was restarted is restarted again', async () => {
    const { test, next } = await scene(comesUp(away, 'dies'));
    using _ = test;
    const { exitCode, code, told: tells } = await next(1, 2);
    assert.deepEqual([exitCode, code], [5, 'WORKER_DIED']);
    assert.deepEqual(tells, ['restart a 2', 'restart a 1']);
    assert.equal(current(test), 'generations/1');
  });

  it('after which it lives and is not ready is a no too', async () => {
    const { test, next } = await scene(comesUp(away, 'lives'));
    using _ = test;
    assert.deepEqual((await next(1, 2)).code, 'WORKER_DIED');
  });

  it('is `told` at best: a process that is up has proved nothing', async () => {
    const { test } = await scene(livingDriver({ a: confirms }, { restarts: (_, n) => confirms(n) }));
    using _ = test;
    await test.publish('access', files(1, 2), { serial: 2 });
    const result = await test.pull();
    assert.deepEqual(
      [result.outcome, result.confirmed, result.workers[0]?.state],
      ['activated', false, 'told'],
    );
  });
});

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
    ['after it said "ok"', told, 'early'],
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
    const driver = livingDriver({ a: told }, { verdictClass: 'early' });
    const { test, next } = await scene(driver, {});
    using _ = test;
    const sleep = test.clock.sleep.bind(test.clock);
    Object.assign(test.clock, {
      sleep: (ms: number, signal?: AbortSignal) => {
        if (driver.told.at(-1) === 'a 2') driver.dead.add('a');
        return sleep(ms, signal);
      },
    });
    assert.deepEqual((await next(2, 1)).code, 'WORKER_DIED');
  });

  it("is not the policy's fault when it was dead before", async () => {
    const { test, driver, next } = await scene(livingDriver({ a: confirms }), {});
    using _ = test;
    driver.dead.add('a');
    const { exitCode, code } = await next(2, 1);
    assert.deepEqual([exitCode, code], [4, 'WORKER_UNREACHABLE']);
    assert.equal(current(test), 'generations/2');
  });

  it('is reported when the way back leaves it dead', async () => {
    const { test } = await scene(mortal(confirms), { onDead: 'report' });
    using _ = test;
    await test.publish('access', files(2, 1), { serial: 2 });
    const result = await test.pull();
    assert.deepEqual(
      [result.outcome, result.problems.map((one) => one.code)],
      ['rolled-back', ['WORKER_DIED', 'WORKER_UNREACHABLE']],
    );
    assert.equal(result.workers[0]?.state, 'unreachable');
  });

  it('is started again where `onDead` says so', async () => {
    const { test, next } = await scene(mortal(confirms), { onDead: 'restart' });
    using _ = test;
    const { exitCode, told: tells } = await next(2, 1);
    assert.deepEqual([exitCode, tells], [5, ['a 2', 'a 1', 'restart a 1']]);
  });

  it('and is not even listed any more is started again', async () => {
    const driver = mortal(confirms);
    const { test, next } = await scene(driver, { onDead: 'restart' });
    using _ = test;
    driver.members = async () => [...driver.workers.keys()].filter((one) => !driver.dead.has(one));
    const { exitCode, told: tells } = await next(2, 1);
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
    const { exitCode, told: tells } = await next(2, 1);
    assert.deepEqual([exitCode, tells], [5, ['a 2', 'a 1', 'restart a 1']]);
  });

  it('blocks where nobody may restart it', async () => {
    const driver = livingDriver({ a: confirms });
    const { test, next } = await scene(driver, {});
    using _ = test;
    driver.workers.set('a', refusesBoth);
    const { exitCode, told: tells } = await next(2, 1);
    assert.deepEqual([exitCode, tells], [6, ['a 2', 'a 1']]);
  });
});

describe('a group whose driver cannot restart', () => {
  for (const config of [{ restartWhen: ['*'] }, { onDead: 'restart' }] as const) {
    it(`is no configuration: ${Object.keys(config)[0]}`, () => {
      const group: WorkerGroupConfig = {
        ...{ name: 'app', uses: ['access'], when: [], confirm: 'optional' },
        reset: { driver: 'scripted', options: {}, timeoutMs: 1, min: 0 },
        ...config,
      };
      const kind = { name: 'scripted', properties: {}, required: [] };
      const make = (driver: ReturnType<typeof scriptedDriver>) =>
        createWorkerGroups([group], {
          ...{ kinds: [{ ...kind, create: () => driver }], runDirectory: '/r', log: silentLog() },
          ...{ clock: fakeClock(), durable: createDurableFs(), onLateAnswer: () => undefined },
        });
      assert.throws(
        () => make(scriptedDriver({})),
        (error) => isWritError(error) && error.code === 'CONFIG_INVALID',
      );
      assert.equal(make(livingDriver({})).length, 1);
    });
  }
});

// A release after its activation: it settles, or evidence of failure within its bake time causes an automatic rollback.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { pause } from '../../../src/agent/select/pause.js';
import { longCase } from '../../kit/assert/long-case.js';
import { bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';

const second = 1000;

describe('a release within its bake time', () => {
  it('settles once an agent has observed it for the bake time', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.pass(bakeMs - 4 * second);
    assert.equal(baking.test.host.ledger.read().bakes?.['access']?.serial, 1);
    await baking.pass(10 * second);
    const { bakes, settledReleases } = baking.test.host.ledger.read();
    assert.deepEqual(
      [bakes, settledReleases?.['access']?.map(({ serial, isObserved }) => [serial, isObserved])],
      [undefined, [[1, true]]],
    );
  });

  it('is rolled back when its worker crashes 40 s after the activation', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    assert.equal((await baking.take(2)).outcome, 'activated');
    await baking.pass(40 * second);
    assert.equal(baking.active(), '2');
    baking.driver.replace('a');
    await baking.pass(2 * second);
    assert.equal(baking.active(), '1');
    const [end] = baking.restores;
    const [problem] = end?.result.problems ?? [];
    assert.deepEqual(
      [end?.result.outcome, end?.result.exitCode, problem?.code],
      ['rolled-back', 5, 'BAKE_FAILED'],
    );
    assert.deepEqual(
      [problem?.facts['cause'], problem?.facts['serial'], problem?.facts['afterSeconds']],
      ['WORKER_DIED', 2, 42],
    );
    assert.equal(fs.readlinkSync(baking.test.host.paths.current), 'generations/3', 'a generation of its own');
    assert.deepEqual(baking.driver.notified.slice(-1), ['a 3']);
    assert.equal(baking.test.host.ledger.read().bakes, undefined, 'a settled release has no bake time');
  });

  it(
    'is retried once after a bake time when its worker died, then after refusals.retry',
    longCase,
    async () => {
      using baking = bakingHost(supervisedDriver(['a']));
      await baking.take(1);
      await baking.pass(bakeMs + 10 * second);
      await baking.take(2);
      baking.driver.replace('a');
      await baking.pass(2 * second);
      assert.equal((await baking.test.pull()).problems[0]?.code, 'REMEMBERED_REFUSAL');
      await baking.pass(bakeMs);
      assert.deepEqual([(await baking.test.pull()).outcome, baking.active()], ['activated', '2']);
      // The crash before is attributed to the first attempt, and does not count as a crash before the release.
      await baking.pass(20 * second);
      baking.driver.replace('a');
      await baking.pass(2 * second);
      assert.equal(baking.active(), '1');
      await baking.pass(bakeMs);
      assert.equal((await baking.test.pull()).problems[0]?.code, 'REMEMBERED_REFUSAL');
    },
  );

  it('is not at fault for a crash right before its activation, which the next observation finds', async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.pass(bakeMs + 70 * second);
    baking.driver.replace('a');
    await baking.take(2);
    await baking.pass(4 * second);
    assert.deepEqual([baking.active(), baking.restores.length], ['2', 0]);
    baking.driver.replace('a');
    await baking.pass(4 * second);
    assert.equal(baking.active(), '2', 'the daemon crashed as often before');
    baking.driver.replace('a');
    await baking.pass(4 * second);
    assert.equal(baking.active(), '1');
  });

  it('stays when its supervisor ends its worker on request', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    await baking.take(2);
    for (let restarts = 0; restarts < 6; restarts += 1) {
      await baking.live(20 * second);
      baking.driver.replace('a', 'clean');
    }
    await baking.live(bakeMs);
    assert.deepEqual([baking.active(), baking.restores.length], ['2', 0]);
    assert.equal(baking.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 2);
  });

  it('stays when its worker crashed equally often before the swap', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    baking.driver.replace('a');
    await baking.pass(60 * second);
    await baking.take(2);
    await baking.pass(60 * second);
    baking.driver.replace('a');
    await baking.pass(60 * second);
    assert.equal(baking.active(), '2');
    baking.driver.replace('a');
    await baking.pass(2 * second);
    assert.equal(baking.active(), '1', 'a second crash exceeds the number before');
  });

  it('survives one crash of one of three workers, and fails at the second', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a', 'b', 'c']));
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    await baking.take(2);
    baking.driver.replace('b');
    await baking.pass(30 * second);
    assert.equal(baking.active(), '2');
    baking.driver.replace('c');
    await baking.pass(2 * second);
    assert.equal(baking.active(), '1');
  });

  it(
    'stays when a person restarts a worker twice and no supervisor records the cause',
    longCase,
    async () => {
      using baking = bakingHost(supervisedDriver(['a'], 'unrecorded'));
      await baking.take(1);
      await baking.pass(bakeMs + 10 * second);
      await baking.take(2);
      for (let restarts = 0; restarts < 3; restarts += 1) {
        await baking.pass(30 * second);
        baking.driver.replace('a');
      }
      await baking.pass(bakeMs);
      assert.deepEqual([baking.active(), baking.restores.length], ['2', 0]);
    },
  );

  it(
    'is rolled back when a worker is replaced repeatedly and no supervisor records the cause',
    longCase,
    async () => {
      using baking = bakingHost(supervisedDriver(['a'], 'unrecorded'));
      await baking.take(1);
      await baking.pass(bakeMs + 10 * second);
      await baking.take(2);
      for (let restarts = 0; restarts < 5; restarts += 1) {
        await baking.pass(20 * second);
        baking.driver.replace('a');
      }
      await baking.pass(2 * second);
      assert.equal(baking.active(), '1');
      assert.equal(baking.restores[0]?.result.problems[0]?.facts['cause'], 'WORKER_DIED');
    },
  );

  it('is rolled back in a pause, which only prevents new releases', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    await baking.take(2);
    pause(baking.test.host, { by: 'anna', reason: 'freeze' });
    baking.driver.replace('a');
    await baking.pass(2 * second);
    assert.equal(baking.active(), '1');
  });

  it(
    'stays when it is the first policy of the host, and its failure is a problem until it is replaced',
    longCase,
    async () => {
      using baking = bakingHost(supervisedDriver(['a']));
      await baking.take(1);
      await baking.pass(2 * second);
      baking.driver.replace('a');
      await baking.pass(bakeMs * 4);
      assert.deepEqual([baking.active(), baking.restores.length], ['1', 0]);
      const bake = baking.test.host.ledger.read().bakes?.['access'];
      assert.deepEqual([bake?.failure?.cause, bake?.serial], ['WORKER_DIED', 1], 'it never settles');
      await baking.take(2);
      assert.equal(baking.test.host.ledger.read().bakes?.['access']?.failure, undefined);
    },
  );

  it('settles unobserved after three bake times without an agent', async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.test.clock.advance(3 * bakeMs);
    await baking.pass(2 * second);
    assert.equal(baking.test.host.ledger.read().settledReleases?.['access']?.[0]?.isObserved, false);
  });
});

describe('releases of a bundle that fails again and again', longCase, () => {
  it('wait for a growing time from the second restore on, until one settles', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    for (const serial of [2, 3]) {
      assert.equal(
        (await baking.take(serial)).outcome,
        'activated',
        `the release ${serial} waits for nothing`,
      );
      await baking.pass(10 * second);
      baking.driver.replace('a');
      await baking.pass(2 * second);
    }
    const waiting = await baking.take(4);
    assert.deepEqual([waiting.exitCode, waiting.problems[0]?.code, baking.active()], [8, 'BAKE_GAP', '1']);
    await baking.pass(300 * second);
    assert.equal((await baking.test.pull()).outcome, 'activated');
    await baking.pass(bakeMs + 10 * second);
    assert.equal(baking.test.host.ledger.read().unsettled, undefined);
  });

  it('do not wait when the active one was withdrawn', async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    for (const serial of [2, 3]) {
      await baking.take(serial);
      await baking.pass(10 * second);
      baking.driver.replace('a');
      await baking.pass(2 * second);
    }
    await baking.test.publish('access', { f: '4' }, { serial: 4, withdrawn: [1] });
    assert.deepEqual([(await baking.test.pull()).outcome, baking.active()], ['activated', '4']);
  });

  it('are left out while one bakes, after three bake times in which none settled', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    let serial = 1;
    for (; serial <= 6; serial += 1) {
      assert.equal((await baking.take(serial)).outcome, 'activated', String(serial));
      await baking.pass(bakeMs / 2);
    }
    assert.equal((await baking.take(serial)).problems[0]?.code, 'BAKE_GAP');
    await baking.pass(bakeMs / 2 + 10 * second);
    assert.equal(baking.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 6);
    assert.equal((await baking.test.pull()).outcome, 'activated');
  });
});

describe('the last release that settled', () => {
  it('is left by a rollback after a failed release, because the settled generation before has the same releases', async () => {
    using baking = bakingHost(supervisedDriver(['a']));
    for (const serial of [1, 2]) {
      await baking.take(serial);
      await baking.pass(bakeMs + 10 * second);
    }
    await baking.take(3);
    baking.driver.replace('a');
    await baking.pass(2 * second);
    assert.equal(baking.active(), '2');
    const { signal } = new AbortController();
    const end = await rollBack(baking.test.host, { by: 'anna', signal });
    assert.deepEqual([end.result.outcome, baking.active()], ['activated', '1']);
  });

  it('is retained, and a rollback after 22 unsettled releases activates it', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']), { config: { keep: { generations: 3, graceMs: 0 } } });
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    for (let serial = 2; serial < 24; serial += 1) {
      await baking.take(serial);
      await baking.pass(20 * second);
    }
    assert.deepEqual([baking.active(), baking.restores.length], ['23', 0]);
    const { signal } = new AbortController();
    const end = await rollBack(baking.test.host, { by: 'anna', signal });
    assert.deepEqual([end.result.outcome, baking.active()], ['activated', '1']);
  });

  it('is active again when the newest of 22 releases crashes', longCase, async () => {
    using baking = bakingHost(supervisedDriver(['a']), { config: { keep: { generations: 3, graceMs: 0 } } });
    await baking.take(1);
    await baking.pass(bakeMs + 10 * second);
    for (let serial = 2; serial < 24; serial += 1) {
      await baking.take(serial);
      await baking.pass(20 * second);
    }
    baking.driver.replace('a');
    await baking.pass(2 * second);
    assert.equal(baking.active(), '1');
  });

  it(
    'is not activated again when it was withdrawn, in contrast to the newest older generation that is allowed',
    longCase,
    async () => {
      using baking = bakingHost(supervisedDriver(['a']));
      await baking.take(1);
      await baking.pass(bakeMs + 10 * second);
      await baking.take(2);
      await baking.pass(10 * second);
      await baking.test.publish('access', { f: '3' }, { serial: 3, withdrawn: [1] });
      await baking.test.pull();
      baking.driver.replace('a');
      await baking.pass(2 * second);
      assert.equal(baking.active(), '2');
      assert.equal(baking.test.host.ledger.read().bakes?.['access']?.serial, 2, 'it bakes in full');
    },
  );
});

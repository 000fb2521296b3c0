// A start after a boot of the host or an upgrade of Writ: its effect on releases in their bake time.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { type StartEnd, startHost } from '../../../src/agent/startup/start-host.js';
import { writeJournal } from '../../../src/agent/state/journal.js';
import type { Journal } from '../../../src/agent/state/recovery-rules.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { setLedger } from '../../kit/host/set-ledger.js';

const second = 1000;

/** The journal of a swap that did not reach its link: recovery discards it. */
const swapBeforeItsLink: Journal = {
  ...{ writ: 1, cycle: 'c-1', from: 2, to: 9, direction: 'forward', startedAtMs: 0, kind: 'update' },
};

/** A start after a boot; `abrupt` leaves the state of a power cut. */
function boot({ test }: BakingHost, how: 'orderly' | 'abrupt' | 'in a swap'): Promise<StartEnd> {
  const host = test.reopen();
  const { ledger, paths } = host;
  const bakes = Object.entries(ledger.read().bakes ?? {}).map(([bundle, bake]) => {
    return [bundle, { ...bake, bootId: 'a boot before' }] as const;
  });
  setLedger(ledger, { bakes: Object.fromEntries(bakes) });
  if (how === 'abrupt') fs.mkdirSync(join(paths.staging, 'c-1'));
  if (how === 'in a swap') writeJournal(paths, host.durable, swapBeforeItsLink);
  return startHost(host, { cycle: newCycleId(), signal: new AbortController().signal });
}

async function baking(): Promise<BakingHost> {
  const made = bakingHost(supervisedDriver(['a']));
  await made.take(1);
  await made.pass(bakeMs + 10 * second);
  await made.take(2);
  await made.pass(10 * second);
  return made;
}

describe('a release in its bake time', longCase, () => {
  it('is rolled back at the second boot without an orderly shutdown, before workers are notified', async () => {
    using host = await baking();
    assert.equal((await boot(host, 'abrupt')).restored, undefined);
    assert.equal(host.active(), '2');
    const { restored } = await boot(host, 'abrupt');
    assert.deepEqual(
      [restored?.result.outcome, restored?.result.problems[0]?.code],
      ['rolled-back', 'BAKE_FAILED'],
    );
    assert.equal(host.active(), '1');
  });

  it('stays after any number of orderly boots', async () => {
    using host = await baking();
    for (let boots = 0; boots < 4; boots += 1)
      assert.equal((await boot(host, 'orderly')).restored, undefined);
    assert.equal(host.active(), '2');
  });

  it('stays after two power cuts within a swap to another release, which the rules of crashes cover', async () => {
    using host = await baking();
    for (let boots = 0; boots < 3; boots += 1)
      assert.equal((await boot(host, 'in a swap')).restored, undefined);
    assert.equal(host.active(), '2');
  });

  it('stays when the agent was killed twice in one boot', async () => {
    using host = await baking();
    for (let kills = 0; kills < 3; kills += 1) {
      fs.mkdirSync(join(host.test.host.paths.staging, 'c-1'));
      const options = { cycle: newCycleId(), signal: new AbortController().signal };
      assert.equal((await startHost(host.test.reopen(), options)).restored, undefined);
    }
    assert.equal(host.active(), '2');
  });

  it('is rolled back by the next start when the agent was killed between the evidence and the rollback', async () => {
    using host = await baking();
    const { ledger } = host.test.host;
    const bake = ledger.read().bakes?.['access'];
    assert.ok(bake);
    const failure = {
      cause: 'WORKER_DIED',
      text: 'app/a ended',
      atMs: bake.startedAtMs + 1,
      groups: ['app'],
    } as const;
    setLedger(ledger, { bakes: { access: { ...bake, failure } } });
    const options = { cycle: newCycleId(), signal: new AbortController().signal };
    const { restored } = await startHost(host.test.reopen(), options);
    assert.deepEqual([restored?.result.outcome, host.active()], ['rolled-back', '1']);
  });
});

describe('a host after an upgrade from 0.1.0', longCase, () => {
  it('has releases settled unobserved that were active for longer than the bake time', async () => {
    using host = await baking();
    const { ledger } = host.test.host;
    setLedger(ledger, {
      bakes: undefined,
      settledReleases: undefined,
      unsettled: undefined,
      runs: undefined,
    });
    await host.test.clock.advance(bakeMs);
    await startHost(host.test.reopen(), { cycle: newCycleId(), signal: new AbortController().signal });
    const { settledReleases, bakes } = host.test.reopen().ledger.read();
    assert.deepEqual(
      [settledReleases?.['access']?.map(({ serial, isObserved }) => [serial, isObserved]), bakes],
      [[[2, false]], undefined],
    );
  });

  it('has a younger release in its bake time', async () => {
    using host = await baking();
    const { ledger } = host.test.host;
    setLedger(ledger, {
      bakes: undefined,
      settledReleases: undefined,
      unsettled: undefined,
      runs: undefined,
    });
    await startHost(host.test.reopen(), { cycle: newCycleId(), signal: new AbortController().signal });
    assert.equal(host.test.reopen().ledger.read().bakes?.['access']?.serial, 2);
  });
});

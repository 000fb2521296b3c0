// Releases that name the release that they correct, on a host with repeated failures of releases.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { pause } from '../../../src/agent/select/pause.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { findDamage as lookForDamage } from '../../kit/host/repair-bench.js';

const second = 1000;

/** Publishes a release that corrects another one, and pulls. */
async function correct(baking: BakingHost, serial: number, fixes: number): Promise<CycleResult> {
  await baking.test.publish('access', { f: String(serial) }, { serial, fixes });
  return baking.test.pull();
}

async function crash(baking: BakingHost): Promise<void> {
  await baking.pass(10 * second);
  baking.driver.replace('a');
  await baking.pass(2 * second);
}

/** On this host release 1 settled, and 2 and 3 were rolled back. */
async function failingHost(): Promise<BakingHost> {
  const baking = bakingHost(supervisedDriver(['a']));
  await baking.take(1);
  await baking.pass(bakeMs + 10 * second);
  for (const serial of [2, 3]) {
    await baking.take(serial);
    await crash(baking);
  }
  return baking;
}

const codeOf = ({ problems }: CycleResult): string | undefined => problems[0]?.code;

describe('a release that corrects another one', () => {
  it('does not wait when the other release was rolled back, and ends the gap', longCase, async () => {
    using baking = await failingHost();
    assert.equal(codeOf(await baking.take(4)), 'BAKE_GAP');
    assert.equal((await correct(baking, 5, 3)).outcome, 'activated');
    assert.equal(baking.active(), '5');
    assert.equal(baking.test.host.ledger.read().unsettled?.['access']?.restores, 0);
    assert.equal((await baking.take(6)).outcome, 'activated', 'the gap is over for the next one, too');
    await baking.pass(bakeMs + 10 * second);
    assert.equal(baking.test.host.ledger.read().unsettled, undefined);
  });

  it('is in the result and in the history with the serial that it corrects', async () => {
    using baking = await failingHost();
    const fixesOf = ({ bundles }: CycleResult) => bundles.map(({ toSerial, fixes }) => [toSerial, fixes]);
    assert.deepEqual(fixesOf(await baking.take(4)), [[4, undefined]]);
    assert.deepEqual(fixesOf(await correct(baking, 5, 3)), [[5, 3]]);
  });

  it('waits like an ordinary release when the corrected release was never active', async () => {
    using baking = await failingHost();
    const waiting = await correct(baking, 5, 4);
    assert.deepEqual([waiting.exitCode, codeOf(waiting), baking.active()], [8, 'BAKE_GAP', '1']);
    assert.equal(baking.test.host.ledger.read().unsettled?.['access']?.corrections, undefined);
  });

  it(
    'does not wait for the bake time of the other release, and is not replaced within its own',
    longCase,
    async () => {
      using baking = bakingHost(supervisedDriver(['a']));
      let serial = 1;
      for (; serial <= 6; serial += 1) {
        await baking.take(serial);
        await baking.pass(bakeMs / 2);
      }
      assert.equal(codeOf(await baking.take(7)), 'BAKE_GAP');
      assert.equal((await correct(baking, 8, 6)).outcome, 'activated');
      assert.equal(
        codeOf(await baking.take(9)),
        'BAKE_GAP',
        'a release without a request does not replace it',
      );
      await baking.pass(bakeMs + 10 * second);
      assert.equal(baking.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 8);
    },
  );

  it('has its full bake time, and is rolled back like an ordinary release', longCase, async () => {
    using baking = await failingHost();
    await correct(baking, 4, 3);
    await crash(baking);
    assert.equal(baking.active(), '1');
    assert.equal(baking.restores.at(-1)?.result.outcome, 'rolled-back');
    assert.equal(codeOf(await baking.test.pull()), 'REMEMBERED_REFUSAL');
  });

  it('skips the gap at most three times until a release settles, when each correction fails', async () => {
    using baking = await failingHost();
    const swaps: number[] = [];
    for (let serial = 4; serial < 20; serial += 1) {
      const { outcome } = await correct(baking, serial, serial - 1);
      if (outcome !== 'activated') continue;
      swaps.push(serial);
      await crash(baking);
    }
    // Three corrections, and one more release after the last of them ended the gap: the second rollback starts it again.
    assert.deepEqual(swaps, [4, 5, 6, 7]);
    assert.equal(codeOf(await correct(baking, 20, 7)), 'BAKE_GAP');
    await baking.pass(310 * second);
    assert.equal((await baking.test.pull()).outcome, 'activated');
    await baking.pass(bakeMs + 10 * second);
    assert.equal(baking.test.host.ledger.read().unsettled, undefined, 'a settled release ends the count');
  });

  it(
    'does not wait when the other release has a recorded refusal and was never active',
    longCase,
    async () => {
      using baking = await failingHost();
      const { host } = baking.test;
      const { refusals } = host.refusals.read();
      const [known] = refusals;
      assert.ok(known !== undefined);
      host.refusals.write({ ...host.refusals.read(), refusals: [...refusals, { ...known, serial: 4 }] });
      assert.equal((await correct(baking, 5, 4)).outcome, 'activated');
    },
  );

  it('overrides neither a pause nor the refusal of its own tree', longCase, async () => {
    using baking = await failingHost();
    await baking.test.publish('access', { f: '3' }, { serial: 4, fixes: 3 });
    assert.equal(codeOf(await baking.test.pull()), 'REMEMBERED_REFUSAL');
    const { host, clock } = baking.test;
    pause(host, { by: 'anna', reason: 'a change of hardware', untilMs: clock.nowMs() + bakeMs });
    const paused = await correct(baking, 5, 3);
    assert.deepEqual([paused.exitCode, baking.active()], [8, '1']);
    assert.notEqual(codeOf(paused), 'BAKE_GAP');
  });

  it(
    'is in the status as offered, and has an intact retained copy after an upgrade from 0.1.0',
    longCase,
    async () => {
      using baking = await failingHost();
      const { host } = baking.test;
      await correct(baking, 4, 3);
      const facts = { version: '0.2.0', state: 'run', contact: { contact: {} }, problems: [] } as const;
      const [bundle] = statusReport(host, facts).bundles;
      assert.deepEqual(bundle?.server, { serial: 4, revision: 'test', fixes: 3 });
      const [release = ''] = fs
        .readdirSync(join(host.paths.archives, 'access'))
        .filter((name) => name.startsWith('4'));
      const path = join(host.paths.archives, 'access', release, 'record.json');
      const record = fs.readFileSync(path, 'utf8');
      assert.ok(record.includes('"fixes":3'), record);
      // The record of a version that did not know the member.
      fs.writeFileSync(path, record.replace('"fixes":3', '"notes":3'));
      assert.deepEqual(await lookForDamage(host), []);
    },
  );
});

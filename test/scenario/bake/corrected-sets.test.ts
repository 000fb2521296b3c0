// One release of a set of bundles fails and is corrected.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';

const second = 1000;

/** @param uses the bundles of the worker that dies */
function hostWithSet(uses: readonly string[]): BakingHost {
  return bakingHost(supervisedDriver(['a']), {
    bundles: [{ name: 'access' }, { name: 'dns' }],
    groups: { app: { config: { uses } } },
    config: { together: [['access', 'dns']] },
  });
}

type Published = Readonly<Record<string, { readonly serial: number; readonly fixes?: number }>>;

async function publish({ test }: BakingHost, releases: Published): Promise<CycleResult> {
  for (const [bundle, info] of Object.entries(releases))
    await test.publish(bundle, { f: String(info.serial) }, info);
  return test.pull();
}

async function crash(host: BakingHost): Promise<void> {
  await host.pass(10 * second);
  host.driver.replace('a');
  await host.pass(2 * second);
}

const both = (serial: number): Published => ({ access: { serial }, dns: { serial } });

/** Release 1 of both has settled, and 2 and 3 of both were rolled back. */
async function failingSet(uses: readonly string[]): Promise<BakingHost> {
  const host = hostWithSet(uses);
  await publish(host, both(1));
  await host.pass(bakeMs + 10 * second);
  for (const serial of [2, 3]) {
    assert.equal((await publish(host, both(serial))).outcome, 'activated');
    await crash(host);
    assert.deepEqual(activeIn(host), ['1', '1']);
  }
  return host;
}

const activeIn = ({ test }: BakingHost): string[] => [test.read('access/f'), test.read('dns/f')];
const codesIn = ({ problems }: CycleResult): string[] => problems.map(({ code }) => code);

describe('a set with a corrected release', () => {
  it('waits like any other set without a correction', longCase, async () => {
    using host = await failingSet(['access', 'dns']);
    assert.deepEqual(codesIn(await publish(host, both(4)))[0], 'BAKE_GAP');
    assert.deepEqual(activeIn(host), ['1', '1']);
  });

  it('waits for the member without a correction when the dead worker uses both', longCase, async () => {
    using host = await failingSet(['access', 'dns']);
    const waiting = await publish(host, { access: { serial: 4, fixes: 3 }, dns: { serial: 4 } });
    assert.deepEqual([codesIn(waiting)[0], activeIn(host)], ['BAKE_GAP', ['1', '1']]);
  });

  it('becomes active at once when both members are corrections, and settles together', longCase, async () => {
    using host = await failingSet(['access', 'dns']);
    const corrections = { access: { serial: 4, fixes: 3 }, dns: { serial: 4, fixes: 3 } };
    assert.equal((await publish(host, corrections)).outcome, 'activated');
    assert.deepEqual(activeIn(host), ['4', '4']);
    await host.pass(bakeMs + 10 * second);
    const { settledReleases = {}, unsettled } = host.test.host.ledger.read();
    assert.deepEqual([settledReleases['access']?.[0]?.serial, settledReleases['dns']?.[0]?.serial], [4, 4]);
    assert.equal(unsettled, undefined);
  });

  it('becomes active with the correction of the failed member when the dead worker does not use the other', async () => {
    using host = await failingSet(['access']);
    const corrected = await publish(host, { access: { serial: 4, fixes: 3 } });
    assert.deepEqual([corrected.outcome, activeIn(host)], ['activated', ['4', '3']]);
  });

  it(
    'is not activated again with the failed release when the other member has no recorded refusal',
    longCase,
    async () => {
      using host = await failingSet(['access']);
      const { bundles } = await host.test.pull();
      assert.deepEqual(
        bundles.map(({ problem }) => [problem?.code, problem?.facts['bundle']]),
        [
          ['REMEMBERED_REFUSAL', 'access'],
          ['REMEMBERED_REFUSAL', 'access'],
        ],
      );
      assert.deepEqual(activeIn(host), ['1', '1']);
      const { refusals } = host.test.host.refusals.read();
      assert.deepEqual([...new Set(refusals.map(({ bundle }) => bundle))], ['access']);
    },
  );

  it('is rolled back together when a correction fails', longCase, async () => {
    using host = await failingSet(['access', 'dns']);
    await publish(host, { access: { serial: 4, fixes: 3 }, dns: { serial: 4, fixes: 3 } });
    await crash(host);
    assert.deepEqual(activeIn(host), ['1', '1']);
    const { corrections } = host.test.host.ledger.read().unsettled?.['dns'] ?? {};
    assert.equal(corrections, 1);
  });
});

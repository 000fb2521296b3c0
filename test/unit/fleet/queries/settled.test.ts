// Hosts by the bake state of their release: in a wait, in the counts of a release, and in the answer about a host.
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import type { BakeState, FleetReport } from '../../../../src/core/fleet/report.js';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { noteAccepting } from '../../../../src/fleet/hosts/sweeps.js';
import { createFleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { assertRecount } from '../../../kit/fleet/assert-recount.js';
import { bundleAt, fleetBench, reportOf, send } from '../../../kit/fleet/fleet-bench.js';

type Active = NonNullable<FleetReport['bundles'][number]['active']>;

function reporting(name: string, bake: BakeState | undefined, more: Partial<Active> = {}): FleetReport {
  const { active, ...bundle } = bundleAt(2);
  assert.ok(active);
  return reportOf(name, {
    bundles: [{ ...bundle, active: { ...active, ...more, ...(bake && { bake }) } }],
  });
}

describe('a release in its bake time, in a fleet', () => {
  const directory = tempDir(memory());
  after(() => directory[Symbol.dispose]());

  it('is counted by its bake state on each host, in a wait and in the counts of a release', async () => {
    const clock = fakeClock({ mode: 'skip' });
    await using bench = await fleetBench(directory.join('settled'), clock);
    await noteAccepting(bench.store.db, clock.nowMs());
    const ingest = createIngest(bench.store, { clock, log: silentLog() });
    const { token } = await bench.token();
    const states: readonly (BakeState | undefined)[] = [
      ...(['settled', 'settled', 'unobserved', 'none', 'baking', 'failed'] as const),
      undefined,
    ];
    const hosts = await Promise.all(states.map((_, at) => bench.enrol(token, `web-${at}`)));
    for (const [at, host] of hosts.entries()) {
      const state = at === 1 ? 'notified' : 'confirmed';
      await send(ingest, host, reporting(`web-${at}`, states[at], { state }));
    }
    const queries = createFleetQueries(bench.store.db, bench.store.fleetId, clock);
    const question = { bundle: 'dns', channel: 'stable', serial: 2 };
    assert.deepEqual((await queries.wait(question)).settled, {
      ...{ confirmed: 3, notified: 1, unobserved: 1 },
      ...{ baking: 1, failed: 1, unknown: 1 },
    });
    const { releases, offers } = await queries.summary('view');
    const [release] = releases;
    assert.deepEqual(offers, [], 'a bake that failed is no offer that failed');
    assert.deepEqual(release?.bakes, { settled: 2, unobserved: 1, none: 1, baking: 1, failed: 1 });
    assert.deepEqual([release?.confirmed, release?.notified], [6, 1]);
    const { bundles } = await queries.host('web-4', 'view');
    assert.equal(bundles[0]?.active?.bake, 'baking');
    const baked = hosts[4];
    assert.ok(baked);
    await send(ingest, baked, reporting('web-4', 'settled'));
    assert.deepEqual((await queries.wait(question)).settled?.baking, 0);
    assert.deepEqual((await queries.summary('view')).releases[0]?.bakes?.settled, 3);
    await ingest.close();
    await assertRecount(bench.store.db);
  });

  it('is not settled on a silent host', longCase, async () => {
    const clock = fakeClock({ mode: 'skip' });
    await using bench = await fleetBench(directory.join('silent'), clock);
    await noteAccepting(bench.store.db, clock.nowMs());
    const ingest = createIngest(bench.store, { clock, log: silentLog() });
    const host = await bench.enrol((await bench.token()).token, 'web-1');
    await send(ingest, host, reporting('web-1', 'settled'));
    for (let passedMs = 0; passedMs < 700_000; passedMs += 20_000) {
      await clock.advance(20_000);
      await noteAccepting(bench.store.db, clock.nowMs());
    }
    const queries = createFleetQueries(bench.store.db, bench.store.fleetId, clock);
    const facts = await queries.wait({ bundle: 'dns', channel: 'stable', serial: 2 });
    assert.deepEqual([facts.silent, facts.settled?.confirmed], [1, 0]);
    await ingest.close();
  });
});

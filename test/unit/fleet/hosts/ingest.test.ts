// Batches of reports: how long they wait, and their effect on counters. The cases of any store are in test/kit/fleet.
import assert from 'node:assert/strict';
import { after, describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { storedCounters } from '../../../../src/fleet/hosts/counter-changes.js';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { assertRecount } from '../../../kit/fleet/assert-recount.js';
import { bundleAt, fleetBench, reportOf, send } from '../../../kit/fleet/fleet-bench.js';

describe('a batch of reports', () => {
  const directory = tempDir();
  after(() => directory[Symbol.dispose]());

  it('does not wait for further reports when it is full', async () => {
    const clock = fakeClock({ mode: 'skip' });
    await using bench = await fleetBench(directory.join('full'), clock);
    const ingest = createIngest(bench.store, { clock, log: silentLog() });
    const strangers = Array.from({ length: 512 }, (_, at) => {
      return { keyId: at.toString(16).padStart(64, '0'), name: `host-${at}`, counter: 1 };
    });
    const before = clock.sleeps.length;
    const verdicts = await Promise.all(strangers.map((one) => send(ingest, one, reportOf(one.name))));
    assert.ok(verdicts.every(({ kind }) => kind === 'refused'));
    // The first report arrived alone. The second batch was full when the lane checked it.
    assert.deepEqual(clock.sleeps.slice(before), [20]);
    await ingest.close();
  });

  it('is answered 503 at once behind 20,000 queued reports', async () => {
    const clock = fakeClock();
    await using bench = await fleetBench(directory.join('queue'), clock);
    const ingest = createIngest(bench.store, { clock, log: silentLog() });
    const broken = Buffer.from('{');
    const take = (_: unknown, at: number) =>
      send(ingest, { keyId: at.toString(16).padStart(64, '0'), name: `host-${at}`, counter: 1 }, broken);
    // The clock does not move, so that no batch begins.
    const waiting = Array.from({ length: 20_000 }, take);
    const answer = await Promise.race([take('late', 20_000), nextTurn('none yet')]);
    assert.deepEqual(answer, { kind: 'unavailable' });
    await ingest.close();
    const verdicts = await Promise.all(waiting);
    assert.deepEqual([...new Set(verdicts.map(({ kind }) => kind))], ['refused']);
  });

  it('changes the counters of the rows that it replaced', async () => {
    const clock = fakeClock({ mode: 'skip' });
    await using bench = await fleetBench(directory.join('numbers'), clock);
    const { db } = bench.store;
    const host = await bench.enrol((await bench.token()).token, 'web-1');
    const ingest = createIngest(bench.store, { clock, log: silentLog() });
    const canary = bundleAt(7, { channel: 'canary' });
    for (const bundles of [[bundleAt(1), canary], [bundleAt(2), canary], [canary], [bundleAt(3)]]) {
      await send(ingest, host, reportOf('web-1', { bundles }));
      const counters = await storedCounters(db);
      await assertRecount(db);
      assert.equal(
        counters.reduce((sum, { count }) => sum + count, 0),
        bundles.length,
      );
    }
    await ingest.close();
  });
});

// Refusals of a fleet's store, by their codes. The preparations are in the cases of any store (test/kit/fleet).
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { approveHost, retireHost } from '../../../src/fleet/hosts/change-host.js';
import { createIngest } from '../../../src/fleet/hosts/ingest.js';
import { openFleetStore } from '../../../src/fleet/store/open-store.js';
import { listTokens, revokeToken, takeUse } from '../../../src/fleet/tokens/tokens.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../kit/disk/temp-dir.js';
import { assertRecount } from '../../kit/fleet/assert-recount.js';
import { bundleAt, fleetBench, reportOf, send } from '../../kit/fleet/fleet-bench.js';

describe('a fleet refuses', () => {
  const clock = fakeClock({ mode: 'skip' });
  const change = { who: 'anna', nowMs: clock.nowMs() };

  it('unknown ids', longCase, async () => {
    using directory = tempDir(memory());
    await using bench = await fleetBench(directory.join('store'), clock);
    const { db } = bench.store;
    await rejectsCode('FLEET_TOKEN_UNKNOWN', revokeToken(db, 'x', change));
    await rejectsCode('FLEET_HOST_UNKNOWN', approveHost(db, 'x', change));
    await rejectsCode('FLEET_HOST_UNKNOWN', retireHost(db, 'x', change));
  });

  it('reports of a host that waits for approval, and invalid reports', async () => {
    using directory = tempDir(memory());
    await using bench = await fleetBench(directory.join('store'), clock);
    const { token } = await bench.token();
    await bench.enrol(token, 'web-1');
    const waiting = await bench.enrol(token, 'web-1');
    const ingest = createIngest(bench.store, { clock, log: silentLog() });
    assert.deepEqual(await send(ingest, waiting, reportOf('web-1')), {
      kind: 'refused',
      code: 'FLEET_KEY_WAITING',
    });
    const invalid = { kind: 'refused', code: 'FLEET_REPORT_INVALID', reason: '/schema const' };
    assert.deepEqual(await send(ingest, waiting, { ...reportOf('web-1'), schema: 2 }), invalid);
    await approveHost(bench.store.db, waiting.keyId, change);
    assert.equal((await send(ingest, waiting, reportOf('web-1'))).kind, 'accepted');
    await ingest.close();
  });

  it('a token of the wrong kind, and the last use of a token to all but one of concurrent requests', async () => {
    using directory = tempDir(memory());
    await using bench = await fleetBench(directory.join('store'), clock);
    const { db } = bench.store;
    const people = await bench.token({ kind: 'people', role: 'operate' });
    await rejectsCode('FLEET_TOKEN_REFUSED', bench.enrol(people.token, 'web-1'));
    const once = await bench.token({ uses: 1 });
    assert.deepEqual([await takeUse(db, once.id), await takeUse(db, once.id)], [true, false]);
    assert.deepEqual((await listTokens(db)).find(({ id }) => id === once.id)?.uses_left, 0);
  });

  it('a name of another host, to a host that reports it and to the second of two concurrent requests', async () => {
    using directory = tempDir(memory());
    await using bench = await fleetBench(directory.join('store'), clock);
    const { db } = bench.store;
    const { token } = await bench.token();
    const [one, two] = [await bench.enrol(token, 'web-1'), await bench.enrol(token, 'web-2')];
    const ingest = createIngest(bench.store, { clock, log: silentLog() });
    const waits = { kind: 'refused', code: 'FLEET_KEY_WAITING' };
    await send(ingest, two, reportOf('web-2'));
    assert.deepEqual(await send(ingest, two, reportOf('web-1')), waits);
    await approveHost(db, two.keyId, change);
    assert.equal((await send(ingest, two, reportOf('web-2'))).kind, 'accepted');
    assert.equal(
      (await db.selectFrom('host_bundles').selectAll().execute()).length,
      1,
      'what it says is news',
    );
    const both = await Promise.all([one, two].map((host) => send(ingest, host, reportOf('web-3'))));
    assert.deepEqual(both.map(({ kind }) => kind).sort(), ['accepted', 'refused']);
    const renames = await db.selectFrom('audit').select('id').where('what', '=', 'host.rename').execute();
    assert.equal(renames.length, 4);
    await ingest.close();
  });

  it('a change by one server of a row that another server changed meanwhile', async () => {
    using directory = tempDir(memory());
    await using bench = await fleetBench(directory.join('store'), clock);
    const host = await bench.enrol((await bench.token()).token, 'web-1');
    const ingests = [1, 2].map(() => createIngest(bench.store, { clock, log: silentLog() }));
    for (let counter = 2; counter < 8; counter++) {
      const reports = ingests.map((ingest, at) =>
        send(ingest, host, reportOf('web-1', { bundles: [bundleAt(counter * 2 + at)] }), { counter }),
      );
      const kinds = (await Promise.all(reports)).map(({ kind }) => kind);
      assert.deepEqual(kinds.sort(), ['accepted', 'challenge']);
    }
    await Promise.all(ingests.map((ingest) => ingest.close()));
    await assertRecount(bench.store.db);
  });

  it('a store of a newer version', async () => {
    using directory = tempDir(memory());
    const options = { clock, log: silentLog() };
    const store = await openFleetStore(directory.join('store'), options);
    const db = store.db.withTables<Record<string, Record<string, unknown>>>();
    await db.insertInto('schema_versions').values({ version: 99, at_ms: 1 }).execute();
    await store.close();
    await rejectsCode('FLEET_STORE_NEWER', openFleetStore(directory.join('store'), options));
  });
});

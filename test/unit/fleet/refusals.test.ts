// What a fleet's store refuses, each by its code; the cases of any store (test/kit/fleet) have what leads to it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { approveHost, retireHost } from '../../../src/fleet/hosts/change-host.js';
import { createIngest } from '../../../src/fleet/hosts/ingest.js';
import { openFleetStore } from '../../../src/fleet/store/open-store.js';
import { revokeToken } from '../../../src/fleet/tokens/tokens.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../kit/disk/temp-dir.js';
import { fleetBench, reportOf, send } from '../../kit/fleet/fleet-bench.js';

describe('a fleet refuses', () => {
  const clock = fakeClock({ mode: 'skip' });
  const change = { who: 'anna', nowMs: clock.nowMs() };

  it('ids that nobody has', async () => {
    using directory = tempDir(memory());
    await using bench = await fleetBench(directory.join('store'), clock);
    const { db } = bench.store;
    await rejectsCode('FLEET_TOKEN_UNKNOWN', revokeToken(db, 'x', change));
    await rejectsCode('FLEET_HOST_UNKNOWN', approveHost(db, 'x', change));
    await rejectsCode('FLEET_HOST_UNKNOWN', retireHost(db, 'x', change));
  });

  it('reports of who waits until it is approved, and any that breaks its schema', async () => {
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

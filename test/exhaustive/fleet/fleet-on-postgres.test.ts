// What must hold of any store, on a real PostgreSQL; test/unit/fleet has the same on the embedded one.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { recount, storedCounters } from '../../../src/fleet/hosts/counter-changes.js';
import { createIngest } from '../../../src/fleet/hosts/ingest.js';
import { openFleetStore } from '../../../src/fleet/store/open-store.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { fleetBench, reportOf, send } from '../../kit/fleet/fleet-bench.js';
import { needsPostgres, type RunningPostgres, startPostgres } from '../../kit/fleet/real-postgres.js';
import { storeCases } from '../../kit/fleet/store-cases.js';

const here = needsPostgres();

describe('a fleet in PostgreSQL', here, () => {
  const directory = tempDir();
  let postgres: RunningPostgres;
  before(async () => {
    postgres = await startPostgres(directory.path);
  });
  after(async () => {
    await postgres[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  });
  storeCases(() => postgres.newDatabase(), 60);

  it('answers 503 while the database crashes, and loses nothing that it acknowledged', async () => {
    await using bench = await fleetBench(await postgres.newDatabase(), systemClock);
    const host = await bench.enrol((await bench.token()).token, 'web-1');
    const ingest = createIngest(bench.store, { clock: systemClock, log: silentLog() });
    assert.equal((await send(ingest, host, reportOf('web-1', { health: 'warning' }))).kind, 'accepted');
    const [restarted] = await Promise.all([
      postgres.restart(),
      until(async () => (await send(ingest, host, reportOf('web-1'))).kind === 'unavailable'),
    ]);
    assert.equal(restarted, undefined);
    const rowBefore = await bench.store.db.selectFrom('hosts').select('health').execute();
    assert.match(rowBefore[0]?.health ?? '', /^(?:ok|warning)$/);
    await until(
      async () => (await send(ingest, host, reportOf('web-1', { health: 'critical' }))).kind === 'accepted',
    );
    await ingest.close();
    const row = await bench.store.db.selectFrom('hosts').select('health').executeTakeFirstOrThrow();
    assert.equal(row.health, 'critical');
    assert.deepEqual(await storedCounters(bench.store.db), await recount(bench.store.db));
  });

  it('says FLEET_STORE_UNREACHABLE where nobody listens, and never the password', async () => {
    const url = 'postgres://writ:hush@127.0.0.1:1/fleet';
    const opening = openFleetStore(url, { clock: systemClock, log: silentLog() });
    const error = await rejectsCode('FLEET_STORE_UNREACHABLE', opening);
    assert.equal(JSON.stringify([error, error.message]).includes('hush'), false);
  });
});

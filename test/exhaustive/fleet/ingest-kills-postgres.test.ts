// kill -9 of an ingest amid its batches, on a real PostgreSQL, and a crash of that PostgreSQL beneath it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createIngest } from '../../../src/fleet/hosts/ingest.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { assertRecount } from '../../kit/fleet/assert-recount.js';
import { fleetBench, reportOf, send } from '../../kit/fleet/fleet-bench.js';
import { needsPostgres, startPostgres } from '../../kit/fleet/real-postgres.js';
import { killDelaysMs, killRounds } from './kill-rounds.js';

describe('an ingest on PostgreSQL', needsPostgres(), () => {
  it('that is killed loses no report that it acknowledged', { timeout: 600_000 }, async () => {
    using directory = tempDir();
    await using postgres = await startPostgres(directory.path);
    await killRounds(await postgres.newDatabase(), killDelaysMs);
  });

  it('answers 503 while the database crashes, and loses nothing that it acknowledged', async () => {
    using directory = tempDir();
    await using postgres = await startPostgres(directory.path);
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
    await assertRecount(bench.store.db);
  });
});

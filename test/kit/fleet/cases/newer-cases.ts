// Tests of each kind of store: an older server runs while a newer one migrates the store. The migration of the newer version
// counts the rows of hosts, as real ones do.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { noteAccepting, runSweeps, sweep } from '../../../../src/fleet/hosts/sweeps.js';
import { saveView } from '../../../../src/fleet/repositories/repository-views.js';
import { emptyView } from '../../../../src/fleet/repositories/view-rules.js';
import { takeLease } from '../../../../src/fleet/store/leases.js';
import { migrate } from '../../../../src/fleet/store/migrate.js';
import { type Migration, migrations } from '../../../../src/fleet/store/migrations.js';
import { type FleetStore, openFleetStore } from '../../../../src/fleet/store/open-store.js';
import { transactOnce } from '../../../../src/fleet/store/transact.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { rejectsCode } from '../../assert/assert-code.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { fleetBench, type NewLocation, reportOf, send } from '../fleet-bench.js';

type AnyTables = Record<string, Record<string, unknown>>;

/** Migrates a store to a version that this program does not know. */
function bringForward({ db }: FleetStore, up: Migration['up'] = async () => undefined): Promise<void> {
  const next = { version: migrations.length + 1, up };
  return migrate(db.withTables(), { id: 'x', nowMs: 1 }, [...migrations, next]);
}

const countByHealth: Migration['up'] = async (trx) => {
  await trx.schema.createTable('census').addColumn('health', 'text').addColumn('hosts', 'bigint').execute();
  const counted = trx.selectFrom('hosts').select(['health', (of) => of.fn.countAll().as('hosts')]);
  await trx.insertInto('census').columns(['health', 'hosts']).expression(counted.groupBy('health')).execute();
};

/** Asserts that the newer server waits for the transaction of the older one and counts its rows. */
export async function countsWhatIsBeingWritten(location: string): Promise<void> {
  await using older = await fleetBench(location, systemClock);
  const newer = await openFleetStore(location, { clock: systemClock, log: silentLog() });
  await older.enrol((await older.token()).token, 'web-1');
  const { migrating } = await transactOnce(older.store.db, async (trx) => {
    await trx.updateTable('hosts').set({ health: 'held' }).execute();
    const migrating = bringForward(newer, countByHealth);
    await setTimeout(300);
    return { migrating };
  });
  await migrating;
  const census = newer.db.withTables<AnyTables>().selectFrom('census').selectAll();
  assert.deepEqual(await census.execute(), [{ health: 'held', hosts: 1 }]);
  await newer.close();
}

/** Registers the cases for one kind of store. */
export function newerCases(newLocation: NewLocation): void {
  describe('a server of an older version', () => {
    it('writes nothing and is notified after a newer server has migrated the store', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { db } = bench.store;
      const { token } = await bench.token();
      const host = await bench.enrol(token, 'web-1');
      const keepalive = createIngest(bench.store, { clock: systemClock, log: silentLog() });
      assert.equal((await send(keepalive, host, reportOf('web-1'))).kind, 'accepted');
      const rows = () => db.selectFrom('hosts').selectAll().execute();
      const before = await rows();
      await bringForward(bench.store);
      assert.equal(
        (await send(keepalive, host, reportOf('web-1', { health: 'warning' }))).kind,
        'unavailable',
      );
      const view = { ...emptyView('https://a/'), triedAtMs: 1 };
      for (const written of [
        () => bench.token(),
        () => bench.enrol(token, 'web-2'),
        () => noteAccepting(db, 1),
        () => takeLease(db, 'sweep', { holder: 'a', nowMs: 1, forMs: 1 }),
        () => sweep(db, 1),
        () => saveView(db, 'a', view),
      ])
        await rejectsCode('FLEET_STORE_NEWER', written());
      await keepalive.close();
      assert.deepEqual(await rows(), before);
      const codes: string[] = [];
      const onNewer = ({ code }: { readonly code: string }): void => void codes.push(code);
      await runSweeps(bench.store, { clock, log: silentLog(), signal: AbortSignal.timeout(60_000), onNewer });
      assert.deepEqual(codes, ['FLEET_STORE_NEWER']);
    });

    it('delays the newer server, which counts the rows of its transaction', async () => {
      await countsWhatIsBeingWritten(await newLocation());
    });

    it('waits for a newer server that has begun to migrate, and then writes nothing', async () => {
      const location = await newLocation();
      await using older = await fleetBench(location, systemClock);
      const newer = await openFleetStore(location, { clock: systemClock, log: silentLog() });
      const { id } = await older.token();
      let late: Promise<unknown> = Promise.resolve();
      await bringForward(newer, async () => {
        late = rejectsCode(
          'FLEET_STORE_NEWER',
          transactOnce(older.store.db, (trx) => trx.updateTable('tokens').set({ note: 'late' }).execute()),
        );
        await setTimeout(300);
      });
      await late;
      const row = await newer.db.selectFrom('tokens').select('note').where('id', '=', id).executeTakeFirst();
      assert.deepEqual(row, { note: '' });
      await newer.close();
    });
  });
}

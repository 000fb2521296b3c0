// Tests of each kind of store: schema versions and starts.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { retireHost } from '../../../../src/fleet/hosts/change-host.js';
import { createFleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { migrate } from '../../../../src/fleet/store/migrate.js';
import { type Migration, migrations } from '../../../../src/fleet/store/migrations.js';
import { openFleetStore } from '../../../../src/fleet/store/open-store.js';
import { RowWriter } from '../../../../src/fleet/store/write-rows.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { rejectsCode } from '../../assert/assert-code.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { assertRecount } from '../assert-recount.js';
import { bundleAt, fleetBench, type NewLocation, reportOf, send } from '../fleet-bench.js';
import { takeBack } from '../store-before.js';
import { ingestOf } from './ingest-scene.js';

/** Registers the cases for one kind of store. */
export function openCases(newLocation: NewLocation): void {
  const options = { clock: fakeClock(), log: silentLog() };

  describe('opening a store', () => {
    it('makes one fleet, however many servers start at once, and keeps it', async () => {
      const location = await newLocation();
      const opened = await Promise.all([1, 2, 3, 4].map(() => openFleetStore(location, options)));
      const [first] = opened;
      assert.equal(new Set(opened.map(({ fleetId }) => fleetId)).size, 1);
      await Promise.all(opened.map((store) => store.close()));
      const again = await openFleetStore(location, options);
      assert.equal(again.fleetId, first?.fleetId);
      await again.close();
    });

    it('takes a version whole or not at all, and refuses a store that is newer', async () => {
      const location = await newLocation();
      const store = await openFleetStore(location, options);
      const db = store.db.withTables<Record<string, Record<string, unknown>>>();
      const facts = { id: 'x', nowMs: 1 };
      const known = migrations.length;
      const next = (up: Migration['up']): readonly Migration[] => [...migrations, { version: known + 1, up }];
      const breaks = next(async (trx) => {
        await trx.schema.createTable('half').addColumn('a', 'text').execute();
        throw new Error('power');
      });
      await assert.rejects(migrate(db, facts, breaks), /power/);
      await assert.rejects(db.selectFrom('half').selectAll().execute());
      await migrate(
        db,
        facts,
        next((trx) => trx.schema.createTable('half').addColumn('a', 'text').execute()),
      );
      assert.deepEqual(await db.selectFrom('half').selectAll().execute(), []);
      await store.close();
      const error = await rejectsCode('FLEET_STORE_NEWER', openFleetStore(location, options));
      assert.deepEqual([error.facts.expected, error.facts.actual, error.kind], [known, known + 1, 'config']);
    });

    it('counts the hosts of a store that had no numbers for them', async () => {
      const location = await newLocation();
      await using bench = await fleetBench(location, options.clock);
      const { token } = await bench.token();
      for (const name of ['web-1', 'web-1', 'web-2', 'web-3']) await bench.enrol(token, name);
      const gone = await bench.enrol(token, 'web-4');
      await retireHost(bench.store.db, gone.keyId, { who: 'anna', nowMs: 1 });
      await takeBack(bench.store);
      const again = await openFleetStore(location, options);
      const { hosts } = await createFleetQueries(again.db, again.fleetId, options.clock).summary('view');
      assert.deepEqual([hosts.accepted, hosts.waiting], [3, 1]);
      await assertRecount(again.db);
      await again.close();
    });

    it('begins the history of a store of 0.1.0 with what its hosts run and refuse', async () => {
      const location = await newLocation();
      await using bench = await fleetBench(location, fakeClock({ mode: 'skip' }));
      const { token } = await bench.token();
      const host = await bench.enrol(token, 'web-1');
      const ingest = ingestOf(bench);
      const offered = { serial: 2, state: 'refused', code: 'CHECK_FAILED', atMs: 5 } as const;
      const waits = { serial: 9, state: 'deferred', code: 'ACTIVATION_PACED', atMs: 5 } as const;
      const bundles = [bundleAt(1, { offered }), bundleAt(8, { channel: 'canary', offered: waits })];
      await send(ingest, host, reportOf('web-1', { bundles }));
      await ingest.close();
      await takeBack(bench.store);
      const again = await openFleetStore(location, options);
      const rows = await again.db.selectFrom('intervals').selectAll().orderBy('serial').execute();
      assert.deepEqual(
        rows.map(({ kind, serial, state, code, since_ms, until_ms, merged }) =>
          [kind, serial, state, code, since_ms, until_ms, merged].join(' '),
        ),
        ['active 1 confirmed  1 0 1', 'refused 2 refused CHECK_FAILED 5 0 1', 'active 8 confirmed  1 0 1'],
      );
      await again.close();
    });

    it('reports FLEET_STORE_FAILED for an error of the database', async () => {
      const store = await openFleetStore(await newLocation(), options);
      const db = store.db.withTables<Record<string, Record<string, unknown>>>();
      await rejectsCode('FLEET_STORE_FAILED', db.selectFrom('nothing').selectAll().execute());
      await store.close();
    });
  });

  describe('rows that are written together', () => {
    it('are inserted, changed and added to, and are unchanged if another writer was first', async () => {
      const store = await openFleetStore(await newLocation(), options);
      const writer = new RowWriter();
      const lease = (name: string, until_ms: number, holder = 'a') => ({ name, holder, until_ms });
      // Batches of 64, 16, 4, 2 and 1.
      const many = Array.from({ length: 87 }, (_, at) => lease(`l${at}`, at));
      assert.equal(await writer.write(store.db, 'leases', many, { key: ['name'] }), 87);
      const added = [lease('l3', 10, 'b'), lease('l4', 10, 'b')];
      await writer.write(store.db, 'leases', added, { key: ['name'], add: ['until_ms'] });
      const rule = { key: ['name'], where: { column: 'until_ms', is: '=', by: 1 } } as const;
      assert.equal(await writer.write(store.db, 'leases', [lease('l3', 14), lease('l4', 14)], rule), 1);
      await writer.write(store.db, 'leases', [lease('l5', 99, 'c')], { key: ['name'], only: ['holder'] });
      const rows = await store.db
        .selectFrom('leases')
        .selectAll()
        .where('name', 'in', ['l3', 'l4', 'l5', 'l86'])
        .execute();
      const byName = Object.fromEntries(rows.map(({ name, holder, until_ms }) => [name, [holder, until_ms]]));
      assert.deepEqual(byName, { l3: ['a', 14], l4: ['b', 14], l5: ['c', 5], l86: ['a', 86] });
      await store.close();
    });

    it('hold integers exactly up to the largest safe one of JavaScript, and fail beyond it', async () => {
      const store = await openFleetStore(await newLocation(), options);
      const most = Number.MAX_SAFE_INTEGER;
      await store.db.updateTable('leases').set({ until_ms: most }).where('name', '=', 'sweep').execute();
      const read = () =>
        store.db.selectFrom('leases').select('until_ms').where('name', '=', 'sweep').execute();
      assert.deepEqual(await read(), [{ until_ms: most }]);
      await store.db
        .updateTable('leases')
        .set((eb) => ({ until_ms: eb('until_ms', '+', 2) }))
        .where('name', '=', 'sweep')
        .execute();
      await rejectsCode('FLEET_STORE_DAMAGED', read());
      await store.close();
    });
  });
}

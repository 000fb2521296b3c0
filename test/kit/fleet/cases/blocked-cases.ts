// Cases of any store: hosts that activate nothing until a person resumes.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sql } from 'kysely';
import { parseHostFilter } from '../../../../src/core/fleet/host-filter.js';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { createFleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { migrate } from '../../../../src/fleet/store/migrate.js';
import type { FleetStore } from '../../../../src/fleet/store/open-store.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { bundleAt, fleetBench, type NewLocation, reportOf, send } from '../fleet-bench.js';

/** As the version before the column left it. */
async function withoutColumn({ db }: FleetStore): Promise<void> {
  const old = 'create index hosts_by_look on hosts (state, kind, agent, cloned, version)';
  for (const text of [
    'drop index hosts_by_look',
    'alter table hosts drop column blocked',
    old,
    'drop index audit_by_subject',
    'delete from schema_versions where version >= 5',
  ])
    await sql.raw(text).execute(db);
}

export function blockedCases(newLocation: NewLocation): void {
  describe('hosts that are blocked', () => {
    it('are counted and found while they say so, also those that said it to the version before', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { db, fleetId } = bench.store;
      const { token } = await bench.token();
      const ingest = createIngest(bench.store, { clock, log: silentLog() });
      const [one, two] = [await bench.enrol(token, 'web-1'), await bench.enrol(token, 'web-2')];
      const findings = ['ACTIVATION_BLOCKED'];
      // What it is offered, and why it does not take it, is no block of its own.
      const offered = { serial: 2, state: 'deferred', code: 'ACTIVATION_BLOCKED', atMs: 5 } as const;
      await send(ingest, one, reportOf('web-1', { health: 'critical', findings }));
      await send(ingest, two, reportOf('web-2', { bundles: [bundleAt(1, { offered })] }));
      const asked = async () => {
        const queries = createFleetQueries(db, fleetId, clock);
        const filter = parseHostFilter('state=blocked');
        const { hosts } = await queries.hosts({ filter, limit: 9 }, 'view');
        const { hosts: counted, findings: found } = await queries.summary('view');
        assert.equal(
          found.some(({ code }) => code === 'BLOCKED'),
          counted.blocked > 0,
        );
        return [counted.blocked, ...hosts.map(({ host }) => host)];
      };
      assert.deepEqual(await asked(), [1, 'web-1']);
      await withoutColumn(bench.store);
      await migrate(db.withTables(), { id: 'x', nowMs: 1 });
      assert.deepEqual(await asked(), [1, 'web-1']);
      await send(ingest, one, reportOf('web-1'));
      assert.deepEqual(await asked(), [0]);
      await ingest.close();
    });
  });
}

// Tests of each kind of store: blocked hosts, which activate nothing until an operator resumes them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { parseHostFilter } from '../../../../src/core/fleet/host-filter.js';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { createFleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { migrate } from '../../../../src/fleet/store/migrate.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { assertRecount } from '../assert-recount.js';
import { bundleAt, fleetBench, type NewLocation, reportOf, send } from '../fleet-bench.js';
import { takeBack } from '../store-before.js';

/** Registers the cases for one kind of store. */
export function blockedCases(newLocation: NewLocation): void {
  describe('hosts that are blocked', () => {
    it('are counted and found while they report a block, also one reported to the previous version', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { db, fleetId } = bench.store;
      const { token } = await bench.token();
      const ingest = createIngest(bench.store, { clock, log: silentLog() });
      const [one, two] = [await bench.enrol(token, 'web-1'), await bench.enrol(token, 'web-2')];
      const findings = ['ACTIVATION_BLOCKED'];
      // A refused offer is no block of the host.
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
      await takeBack(bench.store);
      await migrate(db.withTables(), { id: 'x', nowMs: 1 });
      assert.deepEqual(await asked(), [1, 'web-1']);
      await send(ingest, one, reportOf('web-1'));
      assert.deepEqual(await asked(), [0]);
      await ingest.close();
      await assertRecount(db);
    });
  });
}

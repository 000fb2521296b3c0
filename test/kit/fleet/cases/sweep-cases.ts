// Tests of each kind of store: periodic sweeps.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { isHostSilent, isUnjudged, lastSeenLagMs } from '../../../../src/fleet/hosts/silence-rules.js';
import { noteAccepting, runSweeps, sweep } from '../../../../src/fleet/hosts/sweeps.js';
import { createFleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { takeLease } from '../../../../src/fleet/store/leases.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { fleetBench, type NewLocation, reportOf, send } from '../fleet-bench.js';

const dayMs = 86_400_000;

/** Registers the cases for one kind of store. */
export function sweepCases(newLocation: NewLocation): void {
  describe('sweeps', () => {
    it('are one server at a time, until its lease ends', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      const { db } = bench.store;
      const take = (holder: string, nowMs: number) => takeLease(db, 'sweep', { holder, nowMs, forMs: 100 });
      const first = await Promise.all([take('a', 1000), take('b', 1000)]);
      assert.equal(first.filter(Boolean).length, 1);
      const [winner, loser] = first[0] ? ['a', 'b'] : ['b', 'a'];
      assert.equal(await take(loser ?? '', 1099), false);
      assert.equal(await take(winner ?? '', 1099), true);
      assert.equal(await take(loser ?? '', 1199), true);
    });

    it('begin the time in which the fleet accepts anew after a gap', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      const { db } = bench.store;
      const since = async (nowMs: number): Promise<number> => {
        await noteAccepting(db, nowMs);
        return (await db.selectFrom('fleet').select('accepting_since_ms').executeTakeFirstOrThrow())
          .accepting_since_ms;
      };
      assert.deepEqual(
        [await since(1_000_000), await since(1_030_000), await since(1_060_001)],
        [1_000_000, 1_000_000, 1_060_001],
      );
    });

    it('leave silence to be judged for each host by its own interval: one that claims a day delays no other', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { db, fleetId } = bench.store;
      const { token } = await bench.token();
      const ingest = createIngest(bench.store, { clock, log: silentLog() });
      for (const [name, everyMs] of [
        ['quick', 60_000],
        ['slow', 300_000],
        ['daily', dayMs],
      ] as const)
        await send(ingest, await bench.enrol(token, name), reportOf(name, { everyMs }));
      await ingest.close();
      const sinceMs = clock.nowMs() + 3 * dayMs;
      await noteAccepting(db, sinceMs);
      const rows = await db.selectFrom('hosts').selectAll().execute();
      const counted = async (nowMs: number) => {
        await db.updateTable('fleet').set({ accepting_until_ms: nowMs }).execute();
        const at = { nowMs: () => nowMs, monotonicMs: () => nowMs };
        const { hosts, silence } = await createFleetQueries(db, fleetId, at).summary('view');
        const fleet = await db.selectFrom('fleet').selectAll().executeTakeFirstOrThrow();
        const ruled = [isHostSilent, isUnjudged].map(
          (is) => rows.filter((row) => is(row, fleet, nowMs)).length,
        );
        assert.deepEqual([hosts.silent, hosts.unjudged], ruled, 'the query and the rule are one');
        return [hosts.silent, hosts.unjudged, silence];
      };
      const pastMs = (everyMs: number): number => sinceMs + 2 * everyMs + lastSeenLagMs;
      assert.deepEqual(await counted(sinceMs + 1), [0, 3, 'too-early']);
      assert.deepEqual(await counted(pastMs(60_000) + 1), [1, 2, 'too-early']);
      assert.deepEqual(await counted(pastMs(300_000)), [1, 2, 'too-early']);
      assert.deepEqual(await counted(pastMs(300_000) + 1), [2, 1, 'judged']);
      assert.deepEqual(await counted(pastMs(dayMs) + 1), [3, 0, 'judged']);
    });

    it('retire an ephemeral host that stopped, and one without a report for a day', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { db } = bench.store;
      const { token } = await bench.token();
      const ingest = createIngest(bench.store, { clock, log: silentLog() });
      const stopped = await bench.enrol(token, 'stopped', { ephemeral: true });
      const gone = await bench.enrol(token, 'gone', { ephemeral: true });
      const lasting = await bench.enrol(token, 'lasting');
      for (const host of [stopped, gone, lasting]) await send(ingest, host, reportOf(host.name));
      await send(ingest, stopped, reportOf('stopped', { agent: 'stop' }));
      await send(ingest, lasting, reportOf('lasting', { agent: 'stop' }));
      await ingest.close();
      const live = async (): Promise<string[]> => {
        const rows = await db
          .selectFrom('hosts')
          .select('host')
          .where('state', '=', 'accepted')
          .orderBy('host')
          .execute();
        return rows.map(({ host }) => host);
      };
      assert.deepEqual(await live(), ['gone', 'lasting']);
      await noteAccepting(db, clock.nowMs());
      const laterMs = clock.nowMs() + dayMs;
      await sweep(db, laterMs);
      assert.deepEqual(await live(), ['gone', 'lasting'], 'the fleet itself was away');
      await db
        .updateTable('fleet')
        .set({ accepting_until_ms: laterMs + 1000 })
        .execute();
      await sweep(db, laterMs + 1000);
      assert.deepEqual(await live(), ['lasting']);
      const what = await db
        .selectFrom('audit')
        .select(['what', 'subject'])
        .where('what', 'like', 'host.%')
        .execute();
      const ended = what.filter((row) => row.what !== 'host.enrol').map((row) => [row.what, row.subject]);
      assert.deepEqual(ended.sort(), [
        ['host.gone', gone.keyId],
        ['host.stopped', stopped.keyId],
      ]);
    });

    it('forget what is old, and numbers that came to nothing', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { db } = bench.store;
      const outcome = { key_id: 'k', at_ms: 0, trigger: '', outcome: '', code: '', bundles: '' };
      const nowMs = clock.nowMs();
      await db
        .insertInto('outcomes')
        .values([1, 91].map((days) => ({ ...outcome, n: days, received_at_ms: nowMs - days * dayMs })))
        .execute();
      await db
        .insertInto('sessions')
        .values([nowMs, nowMs + 1].map((at) => ({ digest: `${at}`, token_id: '', expires_at_ms: at })))
        .execute();
      const counter = { repository: '', bundle: '', channel: '', manifest: '', serial: 0, slot: 0 };
      await db
        .insertInto('counters')
        .values([0, 1].map((count) => ({ ...counter, state: `${count}`, count })))
        .execute();
      await bench.token();
      await sweep(db, nowMs);
      const left = async (table: 'outcomes' | 'sessions' | 'counters' | 'audit') =>
        (
          await db
            .selectFrom(table)
            .select((eb) => eb.fn.countAll<number>().as('n'))
            .executeTakeFirstOrThrow()
        ).n;
      assert.deepEqual(
        [await left('outcomes'), await left('sessions'), await left('counters'), await left('audit')],
        [1, 1, 1, 1],
      );
      await sweep(db, nowMs + 401 * dayMs);
      assert.deepEqual([await left('outcomes'), await left('audit')], [0, 0]);
    });

    it('run until they are ended, and outlive a store that is away', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const ending = new AbortController();
      const onNewer = assert.ifError;
      const running = runSweeps(bench.store, { clock, log: silentLog(), signal: ending.signal, onNewer });
      const untilMs = async (): Promise<number> =>
        (await bench.store.db.selectFrom('fleet').select('accepting_until_ms').executeTakeFirstOrThrow())
          .accepting_until_ms;
      while (clock.sleeping() === 0) await new Promise(setImmediate);
      assert.equal(await untilMs(), clock.nowMs());
      const [lease] = await bench.store.db
        .selectFrom('leases')
        .selectAll()
        .where('name', '=', 'sweep')
        .execute();
      assert.equal(lease?.until_ms, clock.nowMs() + 120_000);
      ending.abort();
      await running;
    });
  });
}

// Tests of each kind of store: hosts that report a new name.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { approveHost } from '../../../../src/fleet/hosts/change-host.js';
import { type NewLocation, reportOf, send } from '../fleet-bench.js';
import { accepted, ingestOf, type Scene, scenesAt } from './ingest-scene.js';

/** Registers the cases for one kind of store. */
export function renameCases(newLocation: NewLocation): void {
  const within = scenesAt(newLocation);

  describe('another name', () => {
    const auditOf = ({ bench, host }: Scene) =>
      bench.store.db
        .selectFrom('audit')
        .select(['what', 'detail'])
        .where('subject', '=', host.keyId)
        .where('what', '!=', 'host.enrol')
        .orderBy('what')
        .execute();
    const waits = { kind: 'refused', code: 'FLEET_KEY_WAITING' };

    it('that is free is taken, and is in the audit', () =>
      within(async (scene) => {
        const { ingest, host, row } = scene;
        await send(ingest, host, reportOf('web-1'));
        assert.deepEqual(await send(ingest, host, reportOf('web-7')), accepted());
        assert.deepEqual([(await row()).host, (await row()).state], ['web-7', 'accepted']);
        assert.deepEqual(await auditOf(scene), [{ what: 'host.rename', detail: 'web-1 -> web-7' }]);
      }));

    it('that another host has waits for an approval without being counted, and a report after it is a change', () =>
      within(async (scene) => {
        const { bench, ingest, host, row } = scene;
        const { token } = await bench.token();
        const honest = await bench.enrol(token, 'web-2');
        await send(ingest, honest, reportOf('web-2'));
        await send(ingest, host, reportOf('web-1'));
        const outcome = { n: 1, trigger: 'poll', outcome: 'activated', atMs: 5, bundles: [] } as const;
        const squat = reportOf('web-2', { outcomes: [outcome] });
        assert.deepEqual(await send(ingest, host, squat, { counter: 20 }), waits);
        assert.deepEqual(await send(ingest, host, squat, { counter: 20 }), waits);
        const { state, host: name, counter } = await row();
        assert.deepEqual([state, name, counter], ['waiting', 'web-2', 20]);
        const { db } = bench.store;
        const rows = await db.selectFrom('host_bundles').select('key_id').execute();
        assert.deepEqual(rows, [{ key_id: honest.keyId }]);
        assert.deepEqual(await db.selectFrom('outcomes').selectAll().execute(), []);
        assert.deepEqual(await auditOf(scene), [
          { what: 'host.rename', detail: 'web-1 -> web-2' },
          { what: 'host.wait', detail: 'web-2' },
        ]);
        await approveHost(db, host.keyId, { who: 'anna', nowMs: 1 });
        assert.deepEqual(await send(ingest, host, reportOf('web-1'), { counter: 22 }), accepted());
        assert.equal((await db.selectFrom('host_bundles').select('key_id').execute()).length, 2);
      }));

    it('that is taken keeps the host waiting only until it reports a free name, and not before it was accepted', () =>
      within(async (scene) => {
        const { bench, ingest, host, row } = scene;
        const { token } = await bench.token();
        await send(ingest, await bench.enrol(token, 'web-2'), reportOf('web-2'));
        await send(ingest, await bench.enrol(token, 'web-3'), reportOf('web-3'));
        await send(ingest, host, reportOf('web-1'));
        for (let at = 0; at < 30; at++)
          for (const name of ['web-2', 'web-3'])
            assert.deepEqual(await send(ingest, host, reportOf(name)), waits);
        assert.deepEqual(await send(ingest, host, reportOf('web-1')), accepted());
        assert.deepEqual([(await row()).host, (await row()).state], ['web-1', 'accepted']);
        assert.equal((await auditOf(scene)).length, 40, 'the newest of each kind');
        const squatter = await bench.enrol(token, 'web-3');
        assert.equal(squatter.state, 'waiting');
        assert.deepEqual(await send(ingest, squatter, reportOf('web-9')), waits);
      }));

    it('that two ask for at once is one of theirs, by one server and by two', () =>
      within(async ({ bench, ingest, host }) => {
        const { token } = await bench.token();
        const other = await bench.enrol(token, 'web-2');
        const second = ingestOf(bench);
        for (const [at, beside] of [ingest, second].entries()) {
          const both = [
            send(ingest, host, reportOf(`new-${at}`)),
            send(beside, other, reportOf(`new-${at}`)),
          ];
          assert.deepEqual((await Promise.all(both)).map(({ kind }) => kind).sort(), ['accepted', 'refused']);
          for (const { keyId } of [host, other])
            await approveHost(bench.store.db, keyId, { who: 'anna', nowMs: 1 });
        }
        await second.close();
      }));

    it('at each report fills the log with the newest of them, and with nothing of others', () =>
      within(async ({ bench, ingest, host }) => {
        const { token } = await bench.token();
        const other = await bench.enrol(token, 'other');
        await send(ingest, other, reportOf('other-1'));
        for (let at = 0; at < 25; at++) await send(ingest, host, reportOf(`name-${at}`));
        const rows = await bench.store.db
          .selectFrom('audit')
          .select(['what', 'subject', 'detail'])
          .where('what', 'like', 'host.%')
          .orderBy('id', 'desc')
          .execute();
        const renames = rows.filter(({ what, subject }) => what === 'host.rename' && subject === host.keyId);
        assert.deepEqual([renames.length, renames[0]?.detail], [20, 'name-23 -> name-24']);
        const others = rows
          .filter((row) => !renames.includes(row))
          .map(({ what, subject }) => [what, subject]);
        const enrolled = [host, other].map(({ keyId }) => ['host.enrol', keyId]);
        assert.deepEqual(others.sort(), [...enrolled, ['host.rename', other.keyId]].sort());
      }));
  });
}

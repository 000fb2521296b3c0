// Tests of each kind of store: enrolment and retirement of hosts.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { approveHost, retireHost, retireHostsOf } from '../../../../src/fleet/hosts/change-host.js';
import { maxWaitingOfToken } from '../../../../src/fleet/hosts/enrol-rules.js';
import { HostKeys } from '../../../../src/fleet/hosts/host-keys.js';
import { noteAccepting } from '../../../../src/fleet/hosts/sweeps.js';
import { rejectsCode } from '../../assert/assert-code.js';
import { seededBytes } from '../../assert/seeded.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { assertRecount } from '../assert-recount.js';
import { type FleetBench, fleetBench, type NewLocation } from '../fleet-bench.js';

const statesOf = async (bench: FleetBench): Promise<string[]> =>
  (
    await bench.store.db
      .selectFrom('hosts')
      .select('state')
      .orderBy('enrolled_at_ms')
      .orderBy('key_id')
      .execute()
  )
    .map(({ state }) => state)
    .sort();

/** Registers the cases for one kind of store. */
export function enrolCases(newLocation: NewLocation): void {
  describe('enrolment', () => {
    it('takes a use, writes the host with its labels, and answers a lost answer again', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      const { token, id } = await bench.token({ uses: 1, labels: { site: 'fra' } });
      const publicKey = seededBytes(32).toString('base64');
      const labels = { site: 'squat', rack: '4' };
      const host = await bench.enrol(token, 'web-1', { publicKey, labels });
      assert.equal(host.state, 'accepted');
      const again = await bench.enrol(token, 'web-1', { publicKey });
      assert.deepEqual([again.keyId, again.state], [host.keyId, 'accepted']);
      const rows = await bench.store.db.selectFrom('host_labels').selectAll().orderBy('name').execute();
      assert.deepEqual(
        rows.map(({ name, value }) => [name, value]),
        [
          ['rack', '4'],
          ['site', 'fra'],
        ],
      );
      await rejectsCode('FLEET_TOKEN_REFUSED', bench.enrol(token, 'web-2'));
      const key = await new HostKeys(bench.store.db).keyOf(host.keyId);
      assert.equal(Buffer.from(key ?? []).toString('base64'), publicKey);
      assert.equal(await new HostKeys(bench.store.db).keyOf('0'.repeat(64)), undefined);
      const audit = await bench.store.db
        .selectFrom('audit')
        .selectAll()
        .where('what', '=', 'host.enrol')
        .execute();
      assert.deepEqual(
        audit.map(({ who, subject, detail }) => [who, subject, detail]),
        [[`token ${id}`, host.keyId, 'web-1']],
      );
    });

    it('gives one name to one of two that ask at once, by whatever tokens', async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock());
      const tokens = await Promise.all([bench.token(), bench.token()]);
      const hosts = await Promise.all(tokens.map(({ token }) => bench.enrol(token, 'web-1')));
      assert.deepEqual(hosts.map(({ state }) => state).sort(), ['accepted', 'waiting']);
    });

    it('lets a squatter wait for approval, a bounded number for each token', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { token } = await bench.token();
      const honest = await bench.enrol(token, 'web-1');
      const change = { who: 'anna', nowMs: clock.nowMs() };
      for (let at = 0; at < maxWaitingOfToken; at++)
        assert.equal((await bench.enrol(token, 'web-1')).state, 'waiting');
      await rejectsCode('FLEET_ENROL_FULL', bench.enrol(token, 'web-1'));
      const other = await bench.token();
      const moved = await bench.enrol(other.token, 'web-1');
      await approveHost(bench.store.db, moved.keyId, change);
      await approveHost(bench.store.db, moved.keyId, change);
      assert.equal((await statesOf(bench)).filter((state) => state === 'accepted').length, 2);
      await retireHost(bench.store.db, honest.keyId, change);
      await rejectsCode('FLEET_KEY_RETIRED', approveHost(bench.store.db, honest.keyId, change));
      await rejectsCode('FLEET_HOST_UNKNOWN', retireHost(bench.store.db, 'nobody', change));
      await assertRecount(bench.store.db);
    });

    it('replaces a key that is silent, and no other', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { token } = await bench.token();
      const old = await bench.enrol(token, 'web-1');
      await noteAccepting(bench.store.db, clock.nowMs());
      assert.equal((await bench.enrol(token, 'web-1', { replaces: true })).state, 'waiting');
      await clock.advance(20_000);
      for (let passedMs = 0; passedMs < 700_000; passedMs += 20_000) {
        await noteAccepting(bench.store.db, clock.nowMs());
        await clock.advance(20_000);
      }
      assert.equal((await bench.enrol(token, 'web-1', { replaces: true })).state, 'accepted');
      assert.deepEqual(await statesOf(bench), ['accepted', 'retired', 'waiting']);
      const row = await bench.store.db
        .selectFrom('hosts')
        .select('state')
        .where('key_id', '=', old.keyId)
        .execute();
      assert.deepEqual(row, [{ state: 'retired' }]);
      await assertRecount(bench.store.db);
    });

    it('ends for all hosts of a token, and no others', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const [stolen, other] = [await bench.token(), await bench.token()];
      const { db } = bench.store;
      const honest = await bench.enrol(other.token, 'web-0');
      const count = 52;
      for (let at = 0; at < count; at++) await bench.enrol(stolen.token, `web-${at}`);
      const change = { who: 'anna', nowMs: clock.nowMs() };
      const first = await retireHostsOf(db, stolen.id, { ...change, afterKey: '' });
      assert.equal(first.retired, 50);
      const { afterKey = '' } = first;
      assert.match(afterKey, /^[0-9a-f]{64}$/);
      assert.deepEqual(await retireHostsOf(db, stolen.id, { ...change, afterKey }), { retired: 2 });
      assert.deepEqual(await retireHostsOf(db, stolen.id, { ...change, afterKey: '' }), { retired: 0 });
      const left = await db.selectFrom('hosts').select('key_id').where('state', '<>', 'retired').execute();
      assert.deepEqual(left, [{ key_id: honest.keyId }]);
      await rejectsCode('FLEET_TOKEN_UNKNOWN', retireHostsOf(db, 'x', { ...change, afterKey: '' }));
      await assertRecount(db);
    });

    it('never takes a retired key, nor a name that the token does not cover', async () => {
      const clock = fakeClock();
      await using bench = await fleetBench(await newLocation(), clock);
      const { token } = await bench.token({ hosts: 'web-*' });
      await rejectsCode('FLEET_HOST_NOT_COVERED', bench.enrol(token, 'db-1'));
      const publicKey = seededBytes(32).toString('base64');
      const host = await bench.enrol(token, 'web-1', { publicKey });
      await retireHost(bench.store.db, host.keyId, { who: 'anna', nowMs: clock.nowMs() });
      await rejectsCode('FLEET_KEY_RETIRED', bench.enrol(token, 'web-1', { publicKey }));
    });
  });
}

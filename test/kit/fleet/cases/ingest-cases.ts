// Tests of each kind of store: single and concurrent reports.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { retireHost } from '../../../../src/fleet/hosts/change-host.js';
import { storedCounters } from '../../../../src/fleet/hosts/counter-changes.js';
import { type BenchHost, bundleAt, fleetBench, type NewLocation, reportOf, send } from '../fleet-bench.js';
import { accepted, ingestOf, scenesAt } from './ingest-scene.js';

/** Registers the cases for one kind of store. */
export function ingestCases(newLocation: NewLocation): void {
  const within = scenesAt(newLocation);

  describe('a report', () => {
    it('is in the rows when it is answered', () =>
      within(async ({ bench, ingest, host, row }) => {
        const offered = {
          serial: 2,
          state: 'refused',
          code: 'CHECK_FAILED',
          atMs: 5,
          line: 'no\u0000\nzone',
        } as const;
        const outcome = {
          n: 7,
          trigger: 'poll',
          outcome: 'rejected',
          code: 'CHECK_FAILED',
          atMs: 5,
          bundles: [],
        } as const;
        const report = reportOf('web-1', {
          labels: { rack: '4', site: 'squat' },
          bundles: [bundleAt(1, { offered })],
          outcomes: [outcome],
        });
        assert.deepEqual(await send(ingest, host, report), accepted(7));
        const { db } = bench.store;
        const bundles = await db.selectFrom('host_bundles').selectAll().execute();
        assert.deepEqual(
          bundles.map((one) => [
            one.serial,
            one.state,
            one.offered_serial,
            one.offered_code,
            one.offered_line,
          ]),
          [[1, 'confirmed', 2, 'CHECK_FAILED', 'no  zone']],
        );
        const labels = await db.selectFrom('host_labels').select(['name', 'value']).orderBy('name').execute();
        assert.deepEqual(labels, [
          { name: 'rack', value: '4' },
          { name: 'site', value: 'fra' },
        ]);
        const [stored] = await db.selectFrom('outcomes').selectAll().execute();
        assert.deepEqual([stored?.n, stored?.trigger, stored?.code], [7, 'poll', 'CHECK_FAILED']);
        const states = (await storedCounters(db)).map(({ state, serial, count }) => [state, serial, count]);
        assert.deepEqual(states, [
          ['offered:refused:CHECK_FAILED', 2, 1],
          ['active:confirmed', 1, 1],
        ]);
        const { agent, health, root_version, last_outcome, revision } = await row();
        assert.deepEqual([agent, health, root_version, last_outcome, revision], ['run', 'ok', 1, 7, 1]);
      }));

    it('keeps the newest outcomes of a host that reports them without end', () =>
      within(async ({ bench, ingest, host }) => {
        const some = (from: number) =>
          Array.from({ length: 100 }, (_, at) => {
            return { n: from + at, trigger: 'poll', outcome: 'activated', atMs: 1, bundles: [] } as const;
          });
        for (let from = 1; from < 900; from += 100)
          await send(ingest, host, reportOf('web-1', { generation: from, outcomes: some(from) }));
        const { db } = bench.store;
        const left = await db.selectFrom('outcomes').select('n').orderBy('n').execute();
        const numbers = left.map(({ n }) => Number(n));
        assert.deepEqual([numbers.length, numbers[0], numbers.at(-1)], [500, 401, 900]);
      }));

    it('bounds the outcomes of a host that begins with the greatest number', () =>
      within(async ({ bench, ingest, host }) => {
        const some = (from: number, count: number) =>
          Array.from({ length: count }, (_, at) => {
            return { n: from + at, trigger: 'poll', outcome: 'activated', atMs: 1, bundles: [] } as const;
          });
        await send(ingest, host, reportOf('web-1', { outcomes: some(Number.MAX_SAFE_INTEGER, 1) }));
        for (let from = 1; from < 1500; from += 100)
          await send(ingest, host, reportOf('web-1', { generation: from, outcomes: some(from, 100) }));
        const left = await bench.store.db.selectFrom('outcomes').select('n').execute();
        assert.ok(left.length >= 500 && left.length <= 600, `${left.length} rows`);
      }));

    it('moves numbers by what changed, and takes away what is gone', () =>
      within(async ({ bench, ingest, host }) => {
        const two = [bundleAt(1), bundleAt(1, { channel: 'canary' })];
        await send(ingest, host, reportOf('web-1', { labels: { a: '1' }, bundles: two }));
        await send(ingest, host, reportOf('web-1', { bundles: [bundleAt(2)] }));
        const counters = await storedCounters(bench.store.db);
        assert.deepEqual(
          counters.map(({ channel, serial, count }) => [channel, serial, count]),
          [['stable', 2, 1]],
        );
        const labels = await bench.store.db.selectFrom('host_labels').select('name').execute();
        assert.deepEqual(labels, [{ name: 'site' }]);
      }));

    it('that is repeated, since the answer was lost, is answered again and does nothing', () =>
      within(async ({ ingest, host, row }) => {
        const report = reportOf('web-1', {
          outcomes: [{ n: 3, trigger: 'pull', outcome: 'activated', atMs: 1, bundles: [] }],
        });
        assert.deepEqual(await send(ingest, host, report, { counter: 9 }), accepted(3));
        const before = await row();
        assert.deepEqual(await send(ingest, host, report, { counter: 9 }), accepted(3));
        assert.deepEqual(await row(), before);
      }));

    it('with a counter that was used is challenged, and taken once over the nonce', () =>
      within(async ({ ingest, host, row }) => {
        await send(ingest, host, reportOf('web-1'), { counter: 9 });
        const replay = await send(ingest, host, reportOf('web-1', { health: 'critical' }), { counter: 9 });
        assert.ok(replay.kind === 'challenge');
        const { counter, nonce } = replay.challenge;
        assert.equal(counter, 9);
        const again = await send(ingest, host, reportOf('web-1'), { counter: 4 });
        assert.deepEqual(again, replay, 'replays write nothing: the nonce is the same');
        const wrong = await send(ingest, host, reportOf('web-1'), { counter: 10, nonce: 'guess' });
        assert.deepEqual(wrong, replay);
        const answer = reportOf('web-1', { health: 'warning' });
        assert.deepEqual(await send(ingest, host, answer, { counter: 10, nonce }), accepted());
        assert.equal((await row()).health, 'warning');
        const used = await send(ingest, host, reportOf('web-1'), { counter: 11, nonce });
        assert.ok(used.kind === 'challenge' && used.challenge.nonce !== nonce);
      }));

    it('is refused as a whole from an unknown, waiting or retired host, beyond a bound, or under a name not covered', () =>
      within(async ({ bench, ingest, host }) => {
        const { db } = bench.store;
        const { token } = await bench.token({ hosts: 'web-*' });
        const waiting = await bench.enrol(token, 'web-1');
        const narrow = await bench.enrol(token, 'web-2');
        const codeOf = async (sender: BenchHost, report: object): Promise<string> => {
          const verdict = await send(ingest, sender, report);
          return verdict.kind === 'refused' ? verdict.code : verdict.kind;
        };
        const report = reportOf('web-1');
        assert.equal(await codeOf({ ...host, keyId: 'f'.repeat(64) }, report), 'FLEET_KEY_UNKNOWN');
        assert.equal(await codeOf(waiting, report), 'FLEET_KEY_WAITING');
        assert.equal(await codeOf(host, { ...report, agent: 'asleep' }), 'FLEET_REPORT_INVALID');
        assert.equal(await codeOf(narrow, reportOf('db-1')), 'FLEET_HOST_NOT_COVERED');
        await retireHost(db, narrow.keyId, { who: 'anna', nowMs: 1 });
        assert.equal(await codeOf(narrow, reportOf('web-2')), 'FLEET_KEY_RETIRED');
        assert.deepEqual(await storedCounters(db), []);
      }));
  });

  describe('two machines under one key', () => {
    it('are marked when their ids alternate, and a machine that boots is not', () =>
      within(async ({ bench, ingest, host, row }) => {
        for (const bootId of ['boot-1', 'boot-2', 'boot-3'])
          await send(ingest, host, reportOf('web-1', { bootId }));
        assert.equal((await row()).cloned, 0);
        for (const bootId of ['boot-2', 'boot-3']) await send(ingest, host, reportOf('web-1', { bootId }));
        assert.equal((await row()).cloned, 1);
        const audit = await bench.store.db
          .selectFrom('audit')
          .select('subject')
          .where('what', '=', 'host.cloned')
          .execute();
        assert.deepEqual(audit, [{ subject: host.keyId }]);
      }));

    it('are marked when both have the same ids and each counts for itself, and one that is put back is not', () =>
      within(async ({ bench, ingest, host, row }) => {
        await send(ingest, host, reportOf('web-1'), { counter: 100 });
        // Each machine continues its own counter, which is behind the other one's, and answers with the nonce.
        const copies = [20, 30];
        const turn = async (at: number): Promise<void> => {
          const report = reportOf('web-1', { health: at % 2 === 0 ? 'ok' : 'warning' });
          const asked = await send(ingest, host, report, { counter: (copies[at % 2] ?? 0) + at });
          assert.ok(asked.kind === 'challenge', JSON.stringify(asked));
          const { counter, nonce } = asked.challenge;
          assert.equal((await send(ingest, host, report, { counter: counter + 1, nonce })).kind, 'accepted');
        };
        for (const at of [0, 1, 2]) await turn(at);
        assert.equal((await row()).cloned, 0);
        await turn(3);
        assert.equal((await row()).cloned, 1);
        const cloned = await bench.store.db
          .selectFrom('audit')
          .select('id')
          .where('what', '=', 'host.cloned')
          .execute();
        assert.equal(cloned.length, 1);
      }));
  });

  describe('many reports at once', () => {
    it('are each answered for themselves, also two of one host', () =>
      within(async ({ bench, ingest, host }) => {
        const { token } = await bench.token();
        const others: BenchHost[] = [];
        for (let at = 0; at < 30; at++) others.push(await bench.enrol(token, `other-${at}`));
        const sent = [
          ...others.map((one, at) => send(ingest, one, reportOf(one.name, { bundles: [bundleAt(at % 3)] }))),
          send(ingest, host, reportOf('web-1', { bundles: [bundleAt(1)] })),
          send(ingest, host, reportOf('web-1', { bundles: [bundleAt(2)] })),
          send(ingest, { ...host, keyId: 'f'.repeat(64) }, reportOf('web-1')),
        ];
        const kinds = (await Promise.all(sent)).map(({ kind }) => kind);
        assert.deepEqual(kinds, [...Array(32).fill('accepted'), 'refused']);
        const bySerial = new Map<number, number>();
        for (const { serial, count } of await storedCounters(bench.store.db))
          bySerial.set(serial, (bySerial.get(serial) ?? 0) + count);
        assert.deepEqual([bySerial.get(0), bySerial.get(1), bySerial.get(2)], [10, 10, 11]);
      }));

    it('are accepted by two servers on one store, and counts equal the rows', () =>
      within(async ({ bench, ingest, host }) => {
        const second = ingestOf(bench);
        for (let round = 0; round < 5; round++) {
          const reports = [1, 2].map((serial) =>
            reportOf('web-1', { bundles: [bundleAt(round * 2 + serial)] }),
          );
          const counter = host.counter + round;
          const verdicts = await Promise.all(
            reports.map((report, at) => send(at === 0 ? ingest : second, host, report, { counter })),
          );
          assert.deepEqual(verdicts.map(({ kind }) => kind).sort(), ['accepted', 'challenge']);
        }
        await second.close();
      }));

    it('are answered 503 when the store is gone, and 503 at once when the ingest ends', () =>
      within(async ({ bench, ingest, host }) => {
        const closed = await fleetBench(await newLocation(), bench.clock);
        const lost = ingestOf(closed);
        await closed.store.close();
        assert.deepEqual(await send(lost, host, reportOf('web-1')), { kind: 'unavailable' });
        await ingest.close();
        assert.deepEqual(await send(ingest, host, reportOf('web-1')), { kind: 'unavailable' });
      }));
  });
}

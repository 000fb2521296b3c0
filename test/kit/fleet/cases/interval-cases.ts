// Tests of each kind of store: the intervals in which hosts ran or refused a release.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ReleaseInterval } from '../../../../src/core/fleet/history-answers.js';
import { retireHost } from '../../../../src/fleet/hosts/change-host.js';
import { sweep } from '../../../../src/fleet/hosts/sweeps.js';
import { createFleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { rejectsCode } from '../../assert/assert-code.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { bundleAt, type FleetBench, fleetBench, type NewLocation, reportOf, send } from '../fleet-bench.js';
import { ingestOf } from './ingest-scene.js';

const dayMs = 86_400_000;

const activeAt = (serial: number, sinceMs: number) =>
  bundleAt(serial, {
    active: { serial, manifest: String(serial).padStart(64, '0'), sinceMs, state: 'confirmed' },
  });

const textOf = ({ host, kind, serial, state, code, untilMs }: ReleaseInterval): string =>
  [host, kind, serial, state, code, untilMs === undefined ? 'now' : 'ended'].filter(Boolean).join(' ');

function queriesOf({ store, clock }: FleetBench) {
  return createFleetQueries(store.db, store.fleetId, clock);
}

/** Registers the cases for one kind of store. */
export function intervalCases(newLocation: NewLocation): void {
  const release = (serial: number) => ({ bundle: 'dns', channel: 'stable', serial });

  describe('the history of a release', () => {
    it('names who ran it and who refused it, after no host has it any more', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { token } = await bench.token();
      const ingest = ingestOf(bench);
      const [good, bad] = [await bench.enrol(token, 'good'), await bench.enrol(token, 'refuses')];
      const at = (serial: number) => activeAt(serial, clock.nowMs());
      const refused = { serial: 2, state: 'refused', code: 'CHECK_FAILED', atMs: clock.nowMs() } as const;
      for (const serial of [1, 2, 3]) await send(ingest, good, reportOf('good', { bundles: [at(serial)] }));
      await send(ingest, bad, reportOf('refuses', { bundles: [{ ...at(1), offered: refused }] }));
      await send(ingest, bad, reportOf('refuses', { bundles: [at(3)] }));
      await ingest.close();
      const queries = queriesOf(bench);
      const { intervals } = await queries.history({ of: release(2), limit: 100 });
      assert.deepEqual(intervals.map(textOf).sort(), [
        'good active 2 confirmed ended',
        'refuses refused 2 refused CHECK_FAILED ended',
      ]);
      const { releases, past } = await queries.release(release(2));
      assert.deepEqual(releases, []);
      assert.deepEqual(past, {
        ...{ ran: 1, confirmed: 1 },
        refusals: [{ state: 'refused', code: 'CHECK_FAILED', hosts: 1 }],
      });
      assert.equal((await queries.release(release(3))).past, undefined, 'hosts run it now');
      const ofHost = await queries.history({ of: { host: 'good' }, limit: 100 });
      assert.deepEqual(ofHost.intervals.map(textOf).sort(), [
        ...['good active 1 confirmed ended', 'good active 2 confirmed ended', 'good active 3 confirmed now'],
      ]);
      assert.deepEqual((await queries.host('good', 'view')).intervals, ofHost.intervals);
    });

    it('is read in pages, each interval once, also where many began at one moment', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { token } = await bench.token();
      const ingest = ingestOf(bench);
      const hosts = [];
      for (let at = 0; at < 7; at++) hosts.push(await bench.enrol(token, `web-${at}`));
      // All begin at one time, so that the other columns order them.
      const bundles = [activeAt(1, clock.nowMs())];
      await Promise.all(hosts.map((host) => send(ingest, host, reportOf(host.name, { bundles }))));
      await ingest.close();
      const queries = queriesOf(bench);
      const seen: string[] = [];
      let after: string | undefined;
      do {
        const asked = { of: release(1), limit: 2, ...(after === undefined ? {} : { after }) };
        const page = await queries.history(asked);
        assert.ok(page.intervals.length <= 2);
        seen.push(...page.intervals.map(({ host }) => host));
        after = page.next;
      } while (after !== undefined);
      assert.deepEqual(
        [...seen].sort(),
        Array.from({ length: 7 }, (_, at) => `web-${at}`),
      );
      for (const text of ['', 'e30', 'bm90IGEgcGxhY2U', Buffer.from('[1,2,3]').toString('base64url')])
        await rejectsCode('USAGE', queries.history({ of: release(1), limit: 2, after: text }));
    });

    it('keeps the newest 500 of a host: the older ones are merged by release and day', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { token } = await bench.token();
      const ingest = ingestOf(bench);
      const [host, other] = [await bench.enrol(token, 'flaps'), await bench.enrol(token, 'other')];
      await send(ingest, other, reportOf('other', { bundles: [activeAt(1, clock.nowMs())] }));
      for (let turn = 0; turn < 700; turn++)
        await send(ingest, host, reportOf('flaps', { bundles: [activeAt(1 + (turn % 2), clock.nowMs())] }));
      await ingest.close();
      const rows = await bench.store.db.selectFrom('intervals').selectAll().execute();
      const own = rows.filter(({ key_id }) => key_id === host.keyId);
      assert.ok(own.length <= 601, String(own.length));
      assert.equal(
        own.reduce((sum, { merged }) => sum + merged, 0),
        700,
        'none is lost',
      );
      assert.equal(own.filter(({ until_ms }) => until_ms === 0).length, 1);
      assert.equal(rows.length - own.length, 1);
    });

    it('ends when a host is retired, and is forgotten 90 days later', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { db } = bench.store;
      const { token } = await bench.token();
      const ingest = ingestOf(bench);
      const [gone, stays] = [await bench.enrol(token, 'gone'), await bench.enrol(token, 'stays')];
      for (const host of [gone, stays])
        await send(ingest, host, reportOf(host.name, { bundles: [activeAt(1, clock.nowMs())] }));
      await ingest.close();
      const nowMs = clock.nowMs();
      await retireHost(db, gone.keyId, { who: 'anna', nowMs });
      const left = async () =>
        (await queriesOf(bench).history({ of: release(1), limit: 10 })).intervals.map(textOf).sort();
      const both = ['gone active 1 confirmed ended', 'stays active 1 confirmed now'];
      assert.deepEqual(await left(), both);
      await sweep(db, nowMs + 90 * dayMs);
      assert.deepEqual(await left(), both);
      await sweep(db, nowMs + 90 * dayMs + 1);
      assert.deepEqual(await left(), both.slice(1));
    });

    it('has an outcome once, however often it is reported', async () => {
      const clock = fakeClock({ mode: 'skip' });
      await using bench = await fleetBench(await newLocation(), clock);
      const { token } = await bench.token();
      const ingest = ingestOf(bench);
      const host = await bench.enrol(token, 'away');
      const activated = (n: number, serial: number) => {
        const bundles = [{ bundle: 'dns', channel: 'stable', serial }];
        return { n, trigger: 'poll', outcome: 'activated', atMs: clock.nowMs(), bundles } as const;
      };
      const outcomes = [activated(1, 2), activated(2, 3)];
      // The second report repeats them, because its host did not receive the first answer.
      for (const serial of [1, 3, 4]) {
        const bundles = [activeAt(serial, clock.nowMs())];
        await send(ingest, host, reportOf('away', { bundles, outcomes: serial === 1 ? [] : outcomes }));
      }
      await ingest.close();
      const detail = await queriesOf(bench).host('away', 'view');
      const { intervals = [] } = detail;
      assert.deepEqual(intervals.map(textOf).sort(), [
        ...['away active 1 confirmed ended', 'away active 2 ended', 'away active 3 confirmed ended'],
        'away active 4 confirmed now',
      ]);
      const [third, fourth] = [3, 4].map((serial) => intervals.find((one) => one.serial === serial));
      assert.equal(third?.untilMs, fourth?.sinceMs);
      assert.notEqual(third?.sinceMs, fourth?.sinceMs);
      assert.deepEqual(detail.outcomes[0]?.bundles, outcomes[1]?.bundles);
    });
  });
}

// Tests of each kind of store: the summary, a wait, a release page, host lists and the sentence show equal counts.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ReleaseCount } from '../../../../src/core/fleet/answers.js';
import { deliveryStates, hostsOfRelease } from '../../../../src/core/fleet/delivery-state.js';
import { parseHostFilter } from '../../../../src/core/fleet/host-filter.js';
import type { ActiveState, FleetReport } from '../../../../src/core/fleet/report.js';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { noteAccepting } from '../../../../src/fleet/hosts/sweeps.js';
import { createFleetQueries } from '../../../../src/fleet/queries/fleet-queries.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { bundleAt, fleetBench, type NewLocation, reportOf, send } from '../fleet-bench.js';

type Presence = 'heard' | 'silent' | 'stopped' | 'cloned';
const states = ['confirmed', 'notified', 'unconfirmed', 'none'] as const;
const presences = ['heard', 'silent', 'stopped', 'cloned'] as const;

function reportIn(name: string, state: ActiveState | 'none', presence: Presence): FleetReport {
  const { active, ...bundle } = bundleAt(2);
  const bundles =
    state === 'none' || active === undefined ? [bundle] : [{ ...bundle, active: { ...active, state } }];
  return reportOf(name, { bundles, agent: presence === 'stopped' ? 'stop' : 'run' });
}

const of = 'bundle=dns,channel=stable,serial=2';

async function scene(newLocation: NewLocation) {
  const clock = fakeClock({ mode: 'skip' });
  const bench = await fleetBench(await newLocation(), clock);
  const { db, fleetId } = bench.store;
  await noteAccepting(db, clock.nowMs());
  const ingest = createIngest(bench.store, { clock, log: silentLog() });
  const { token } = await bench.token();
  const queries = createFleetQueries(db, fleetId, clock);
  return {
    ...{ queries, clock },
    report: async (name: string, report: FleetReport) => send(ingest, await bench.enrol(token, name), report),
    markClones: async () => {
      await db.updateTable('hosts').set({ cloned: 1 }).where('host', 'like', '%-cloned-%').execute();
      await db.updateTable('host_counters').set({ cloned: 1 }).execute();
    },
    pass: async () => {
      for (let passedMs = 0; passedMs < 660_000; passedMs += 20_000) {
        await clock.advance(20_000);
        await noteAccepting(db, clock.nowMs());
      }
    },
    countHosts: async (where: string) =>
      (await queries.hosts({ filter: parseHostFilter(where), limit: 99 }, 'view')).hosts.length,
    [Symbol.asyncDispose]: async () => {
      await ingest.close();
      await bench[Symbol.asyncDispose]();
    },
  };
}

/** Registers the cases for one kind of store. */
export function oneCountCases(newLocation: NewLocation): void {
  describe('a host that reported a release', () => {
    it('is in one state in every count, list and sentence', async () => {
      await using f = await scene(newLocation);
      // Each state with each host liveness, in different numbers, so that mixed counts differ.
      const all = states.flatMap((state, a) =>
        presences.map((presence, b) => ({ state, presence, hosts: 1 + a + 4 * b })),
      );
      const reportAll = async (isOld: boolean): Promise<void> => {
        for (const { state, presence, hosts } of all)
          for (let at = 0; at < hosts; at++) {
            const isRecent = presence === 'heard' || (presence === 'cloned' && at % 2 === 0);
            const name = `${state}-${presence}-${at}`;
            if (isRecent !== isOld) await f.report(name, reportIn(name, state, presence));
          }
      };
      await reportAll(true);
      await f.pass();
      await reportAll(false);
      await f.markClones();
      const { releases, idle, sentence } = await f.queries.summary('view');
      const [release] = releases as [ReleaseCount];
      const counts = deliveryStates.map((state) => release[state] ?? 0);
      assert.deepEqual(counts, [1, 2, 3, 5 + 6 + 7, 9 + 10 + 11, 13 + 14 + 15]);
      const wait = await f.queries.wait({ bundle: 'dns', channel: 'stable', serial: 2 });
      const { confirmed, notified, unconfirmed, silent, cloned } = wait;
      assert.deepEqual([confirmed, notified, unconfirmed, silent, 30, cloned], counts);
      assert.deepEqual(idle, [{ bundle: 'dns', channel: 'stable', hosts: 4 + 8 + 16 }]);
      assert.equal(wait.of, hostsOfRelease(release) - (release.stopped ?? 0) + 28);
      assert.match(
        sentence,
        / 1 of 94 confirmed dns 2, 2 have nothing to confirm it, 18 had it and are silent, 42 share a key with a clone\.$/,
      );
      for (const [at, state] of deliveryStates.entries())
        assert.equal(await f.countHosts(`state=${state},${of}`), counts[at], state);
      const page = await f.queries.release({ bundle: 'dns', channel: 'stable', serial: 2 });
      assert.deepEqual(page.releases, releases);
    });

    it('is named in the sentence about it, where at most three hosts are in its state', async () => {
      await using f = await scene(newLocation);
      for (const name of ['b', 'a', 'c']) await f.report(name, reportIn(name, 'unconfirmed', 'heard'));
      const texts = async () => (await f.queries.summary('view')).findings.map(({ text }) => text);
      assert.deepEqual(await texts(), ['3 hosts (a, b, c) run dns 2 unconfirmed']);
      await f.report('d', reportIn('d', 'unconfirmed', 'heard'));
      await f.clock.advance(2000);
      assert.deepEqual(await texts(), ['4 hosts run dns 2 unconfirmed']);
    });

    it('is critical for the fleet while it is for itself, with its code and name', async () => {
      await using f = await scene(newLocation);
      const critical = { health: 'critical', findings: ['WORKERS_MISSING', 'WORKER_UNCONFIRMED'] } as const;
      await f.report('a', { ...reportIn('a', 'confirmed', 'heard'), ...critical });
      await f.report('b', { ...reportIn('b', 'confirmed', 'stopped'), ...critical });
      const blocked = { ...critical, findings: ['ACTIVATION_BLOCKED'] };
      await f.report('c', { ...reportIn('c', 'confirmed', 'heard'), ...blocked });
      const { findings, level, hosts } = await f.queries.summary('view');
      assert.equal(level, 'critical');
      assert.equal(hosts.critical, 1);
      assert.deepEqual(
        findings.map(({ text }) => text),
        ['1 host (c) is blocked after repeated failures', '1 host (a) is critical (WORKERS_MISSING)'],
      );
      assert.equal(await f.countHosts('state=critical'), 1);
      await f.pass();
      assert.equal((await f.queries.summary('view')).hosts.critical, 0, 'a report of the past');
    });
  });
}

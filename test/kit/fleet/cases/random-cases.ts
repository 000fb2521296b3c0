// Tests of each kind of store: counts equal a recount of the rows after random actions.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { isWritError } from '../../../../src/core/errors.js';
import { approveHost, retireHost } from '../../../../src/fleet/hosts/change-host.js';
import { createIngest, type Ingest } from '../../../../src/fleet/hosts/ingest.js';
import { sweep } from '../../../../src/fleet/hosts/sweeps.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { assertRecount } from '../assert-recount.js';
import {
  type BenchHost,
  bundleAt,
  type FleetBench,
  fleetBench,
  type NewLocation,
  reportOf,
  send,
} from '../fleet-bench.js';

const hostCount = 4;

const host = fc.nat({ max: hostCount - 1 });
const offered = fc.constantFrom('refused', 'rolled-back', 'deferred', 'failed');
const bundle = fc.record({
  channel: fc.constantFrom('stable', 'canary', 'old'),
  serial: fc.nat({ max: 3 }),
  state: fc.constantFrom('confirmed', 'notified', 'unconfirmed'),
  offered: fc.option(offered, { nil: undefined }),
});
const action = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('report'),
      host,
      server: fc.nat({ max: 1 }),
      back: fc.boolean(),
      // Sometimes reports the name of another host.
      as: fc.option(host, { freq: 4, nil: undefined }),
      agent: fc.constantFrom('run', 'stop'),
      bundles: fc.uniqueArray(bundle, { maxLength: 3, selector: ({ channel }) => channel }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('retire', 'approve', 'sweep'), host }) },
);
type Action = typeof action extends fc.Arbitrary<infer T> ? T : never;

/** @param runs number of tests, each with up to 30 actions, several at a time, on its own hosts */
export function randomCases(newLocation: NewLocation, runs: number): void {
  describe('numbers by release', () => {
    it('are what a recount of the rows gives, whatever came and however it crossed', {
      timeout: 200_000,
    }, async () => {
      await using bench = await fleetBench(await newLocation(), fakeClock({ mode: 'skip' }));
      const ingests = [1, 2].map(() => createIngest(bench.store, { clock: bench.clock, log: silentLog() }));
      let made = 0;
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.array(action, { minLength: 1, maxLength: 5 }), { maxLength: 6 }),
          async (steps) => {
            const { token } = await bench.token();
            const hosts: BenchHost[] = [];
            // The third host is ephemeral; the last one waits because the first one has its name.
            for (let at = 0; at < hostCount; at++)
              hosts.push(await bench.enrol(token, `h${made}-${at % 3}`, at === 2 ? { ephemeral: true } : {}));
            made++;
            for (const step of steps) await Promise.all(step.map((one) => play(bench, ingests, hosts, one)));
            await assertRecount(bench.store.db);
          },
        ),
        { numRuns: runs },
      );
      await Promise.all(ingests.map((ingest) => ingest.close()));
    });
  });
}

async function play(
  bench: FleetBench,
  ingests: readonly Ingest[],
  hosts: readonly BenchHost[],
  one: Action,
): Promise<void> {
  const target = hosts[one.host];
  if (target === undefined) return;
  const { db } = bench.store;
  const change = { who: 'test', nowMs: bench.clock.nowMs() };
  try {
    if (one.do === 'retire') await retireHost(db, target.keyId, change);
    if (one.do === 'approve') await approveHost(db, target.keyId, change);
    if (one.do === 'sweep') await sweep(db, change.nowMs);
  } catch (error) {
    // A conflicting change is retried; a retired host is not approved.
    if (!isWritError(error)) throw error;
  }
  if (!('bundles' in one)) return;
  const ingest = ingests[one.server] ?? assert.fail();
  const bundles = one.bundles.map(({ channel, serial, state, offered: why }) => {
    const { active = assert.fail() } = bundleAt(serial);
    const more =
      why === undefined
        ? {}
        : { offered: { serial: serial + 1, state: why, code: 'CODE', atMs: 1 } as const };
    return { bundle: 'dns', channel, active: { ...active, state }, ...more } as const;
  });
  const name = hosts[one.as ?? one.host]?.name ?? target.name;
  const report = reportOf(name, { bundles: bundles as never, agent: one.agent as 'run' });
  const counter = one.back ? target.counter - 1 : target.counter++;
  const verdict = await send(ingest, target, report, { counter });
  if (verdict.kind === 'challenge') {
    const { nonce } = verdict.challenge;
    await send(ingest, target, report, { counter: verdict.challenge.counter + 1, nonce });
    target.counter = Math.max(target.counter, verdict.challenge.counter + 2);
  }
}

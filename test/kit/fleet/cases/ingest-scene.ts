// The start of tests of reports: a store, an enrolled host and an ingest. At the end the counts are compared with a recount.
import { createIngest, type Ingest } from '../../../../src/fleet/hosts/ingest.js';
import type { HostRow } from '../../../../src/fleet/store/tables.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../clock/fake-clock.js';
import { assertRecount } from '../assert-recount.js';
import { type BenchHost, type FleetBench, fleetBench, type NewLocation } from '../fleet-bench.js';

export interface Scene {
  readonly bench: FleetBench;
  readonly ingest: Ingest;
  readonly host: BenchHost;
  row(): Promise<HostRow>;
}

export type Within = (play: (scene: Scene) => Promise<void>) => Promise<void>;

export const accepted = (outcomes = 0) => ({ kind: 'accepted', answer: { everyMs: 300_000, outcomes } });

export const ingestOf = (bench: FleetBench): Ingest =>
  createIngest(bench.store, { clock: bench.clock, log: silentLog() });

/** @returns a function that runs a scene with its own store */
export function scenesAt(newLocation: NewLocation): Within {
  return async (play) => {
    await using bench = await fleetBench(await newLocation(), fakeClock({ mode: 'skip' }));
    const { token } = await bench.token({ labels: { site: 'fra' } });
    const host = await bench.enrol(token, 'web-1');
    const ingest = ingestOf(bench);
    const rowOf = () => bench.store.db.selectFrom('hosts').selectAll().where('key_id', '=', host.keyId);
    await play({ bench, ingest, host, row: () => rowOf().executeTakeFirstOrThrow() });
    await ingest.close();
    await assertRecount(bench.store.db);
  };
}

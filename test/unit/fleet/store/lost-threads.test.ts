// Threads of an embedded store that are really killed: at rest, within transactions, within reports. Waiting callers get an error,
// no acknowledged report is lost, and after repeated ends of threads the store refuses statements for a minute.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Worker } from 'node:worker_threads';
import { createIngest } from '../../../../src/fleet/hosts/ingest.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { assertRecount } from '../../../kit/fleet/assert-recount.js';
import { type BenchHost, bundleAt, fleetBench, reportOf, send } from '../../../kit/fleet/fleet-bench.js';
import { ownRoutesOf } from '../../../kit/fleet/own-routes.js';

interface Threads extends Disposable {
  /** All threads that started while the watch was active, including those that ended. */
  readonly all: readonly Worker[];
  /** Ends a thread from outside, as a kill would. */
  kill(): Promise<void>;
}

/** Records each thread that this process starts. */
function watchThreads(): Threads {
  const all: Worker[] = [];
  const note = (worker: Worker): void => void all.push(worker);
  process.on('worker', note);
  return {
    all,
    kill: async () => void (await Promise.all(all.map((worker) => worker.terminate()))),
    [Symbol.dispose]: () => void process.off('worker', note),
  };
}

describe('a thread of an embedded store that ends', longCase, () => {
  it('rolls back its open transaction, and the next statement starts a new thread', async () => {
    using directory = tempDir(memory());
    using threads = watchThreads();
    await using bench = await fleetBench(directory.join('store'), fakeClock());
    const { db } = bench.store;
    const write = (on: typeof db, untilMs: number) =>
      on.updateTable('leases').set({ until_ms: untilMs }).where('name', '=', 'sweep').execute();
    const broken = db.transaction().execute(async (trx) => {
      await write(trx, 7);
      await threads.kill();
      // Without this, the statements after the end of the thread would run as half of a transaction.
      await rejectsCode('FLEET_STORE_UNREACHABLE', write(trx, 8));
      return write(trx, 9);
    });
    await rejectsCode('FLEET_STORE_UNREACHABLE', broken);
    const read = () => db.selectFrom('leases').select('until_ms').where('name', '=', 'sweep').execute();
    assert.deepEqual(await read(), [{ until_ms: 0 }]);
    await write(db, 10);
    assert.deepEqual(await read(), [{ until_ms: 10 }]);
    assert.ok(threads.all.length > 2);
  });

  it('fails each waiting statement, also after an error in the thread', async () => {
    using directory = tempDir(memory());
    using threads = watchThreads();
    await using bench = await fleetBench(directory.join('store'), fakeClock());
    const ask = () => bench.store.db.selectFrom('fleet').select('id').executeTakeFirstOrThrow();
    // The threads of both readers are started here.
    await Promise.all([ask(), ask()]);
    // A request of null: the thread throws when it reads a member.
    for (const worker of threads.all) worker.postMessage(null);
    const results = await Promise.allSettled(Array.from({ length: 20 }, ask));
    const codes = results.flatMap((one) => (one.status === 'rejected' ? [one.reason.code] : []));
    assert.deepEqual(new Set(codes), new Set(['FLEET_STORE_UNREACHABLE']));
    assert.equal((await ask()).id, bench.store.fleetId);
  });

  it('loses no acknowledged report, and keeps its counters equal to a recount', {
    timeout: 60_000,
  }, async () => {
    using directory = tempDir();
    using threads = watchThreads();
    await using bench = await fleetBench(directory.join('store'), systemClock);
    const { token } = await bench.token();
    const hosts: BenchHost[] = [];
    for (let at = 0; at < 20; at++) hosts.push(await bench.enrol(token, `host-${at}`));
    const ingest = createIngest(bench.store, { clock: systemClock, log: silentLog() });
    const acknowledged = new Map<string, number>();
    const refused = new Set<string>();
    const roundOf = async (host: BenchHost): Promise<void> => {
      const { counter } = host;
      const verdict = await send(ingest, host, reportOf(host.name, { bundles: [bundleAt(counter)] }));
      if (verdict.kind === 'accepted') acknowledged.set(host.keyId, counter);
      else refused.add(verdict.kind);
    };
    for (let kills = 0; kills < 4; kills++) {
      const rounds = Promise.all(hosts.map(roundOf));
      // Kill at another position in the batch each time, after a growing number of runs of the event loop.
      for (let turns = 0; turns < kills * 40; turns++) await new Promise(setImmediate);
      await threads.kill();
      await rounds;
      await Promise.all(hosts.map(roundOf));
    }
    await ingest.close();
    assert.deepEqual(
      [...refused].filter((kind) => kind !== 'unavailable'),
      [],
    );
    assert.equal(acknowledged.size, hosts.length);
    const rows = await bench.store.db.selectFrom('host_bundles').select(['key_id', 'serial']).execute();
    for (const { key_id, serial } of rows) assert.ok(serial >= (acknowledged.get(key_id) ?? 0), key_id);
    await assertRecount(bench.store.db);
  });

  it('makes the store unreachable after more than ten ends in a minute, until the minute is over', async () => {
    using directory = tempDir(memory());
    using threads = watchThreads();
    const clock = fakeClock();
    await using bench = await fleetBench(directory.join('store'), clock);
    const ask = await ownRoutesOf(bench);
    const health = async (): Promise<unknown> => {
      await clock.advance(2_000);
      return ask('/healthz');
    };
    for (let kills = 0; kills < 10; kills++) {
      assert.equal(((await health()) as { status: string }).status, 'ok');
      await threads.kill();
    }
    assert.equal(((await health()) as { status: string }).status, 'ok');
    await threads.kill();
    const started = threads.all.length;
    for (let times = 0; times < 3; times++)
      await rejectsCode('FLEET_STORE_UNREACHABLE', health() as Promise<unknown>);
    assert.equal(threads.all.length, started);
    await clock.advance(60_000);
    assert.equal(((await health()) as { status: string }).status, 'ok');
  });
});

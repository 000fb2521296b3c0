// The rules of any store, on a real PostgreSQL; test/unit/fleet checks them on the embedded one.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { KyselyPlugin } from 'kysely';
import { approveHost, retireHost } from '../../../src/fleet/hosts/change-host.js';
import { slotOf } from '../../../src/fleet/hosts/counter-changes.js';
import { createIngest } from '../../../src/fleet/hosts/ingest.js';
import { openFleetStore } from '../../../src/fleet/store/open-store.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { assertRecount } from '../../kit/fleet/assert-recount.js';
import { storeCases } from '../../kit/fleet/cases/store-cases.js';
import { type BenchHost, type FleetBench, fleetBench, reportOf, send } from '../../kit/fleet/fleet-bench.js';
import { needsPostgres, type RunningPostgres, startPostgres } from '../../kit/fleet/real-postgres.js';

const here = needsPostgres();

/** One host for each of the four lanes of a server: their keys are random. */
async function hostsOfAllLanes(bench: FleetBench, token: string): Promise<readonly BenchHost[]> {
  const byLane = new Map<number, BenchHost>();
  for (let at = 0; byLane.size < 4; at++) {
    const host = await bench.enrol(token, `web-${at}`);
    byLane.set(slotOf(host.keyId) % 4, host);
  }
  return [...byLane.values()];
}

describe('a fleet in PostgreSQL', here, () => {
  const directory = tempDir();
  let postgres: RunningPostgres;
  before(async () => {
    postgres = await startPostgres(directory.path);
  });
  after(async () => {
    await postgres[Symbol.asyncDispose]();
    directory[Symbol.dispose]();
  });
  storeCases(() => postgres.newDatabase(), 60);

  it('commits reports of other hosts beside a batch that waits for a row', async () => {
    await using bench = await fleetBench(await postgres.newDatabase(), systemClock);
    const { db } = bench.store;
    const { token } = await bench.token();
    const ingest = createIngest(bench.store, { clock: systemClock, log: silentLog() });
    const hosts = await hostsOfAllLanes(bench, token);
    const [held, ...others] = hosts;
    assert.ok(held !== undefined && others.length === 3);
    let answered = false;
    const waiting = await db.transaction().execute(async (trx) => {
      await trx.updateTable('hosts').set({ health: 'held' }).where('key_id', '=', held.keyId).execute();
      const verdict = send(ingest, held, reportOf(held.name)).then((output) => {
        answered = true;
        return output;
      });
      const beside = await Promise.all(others.map((one) => send(ingest, one, reportOf(one.name))));
      assert.deepEqual(new Set(beside.map(({ kind }) => kind)), new Set(['accepted']));
      assert.equal(answered, false);
      return { verdict };
    });
    assert.equal((await waiting.verdict).kind, 'accepted');
    await ingest.close();
    await assertRecount(db);
  });

  it('refuses an approval that a retirement overtook', async () => {
    await using bench = await fleetBench(await postgres.newDatabase(), systemClock);
    const { db } = bench.store;
    const { token } = await bench.token();
    await bench.enrol(token, 'web-1');
    const { keyId, state } = await bench.enrol(token, 'web-1');
    assert.equal(state, 'waiting');
    const change = { who: 'anna', nowMs: 1 };
    let reads = 0;
    // The approval has read the row when the retirement changes it.
    const retires: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      transformResult: async ({ result }) => {
        const isHost = result.rows.some((row) => 'revision' in row);
        if (isHost && reads++ === 0) await retireHost(db, keyId, change);
        return result;
      },
    };
    await rejectsCode('FLEET_KEY_RETIRED', approveHost(db.withPlugin(retires), keyId, change));
    const row = await db.selectFrom('hosts').select('state').where('key_id', '=', keyId).executeTakeFirst();
    assert.deepEqual([reads, row?.state], [2, 'retired']);
    await assertRecount(db);
  });

  it('reports FLEET_STORE_UNREACHABLE without a server, and never the password', async () => {
    const url = 'postgres://writ:hush@127.0.0.1:1/fleet';
    const opening = openFleetStore(url, { clock: systemClock, log: silentLog() });
    const error = await rejectsCode('FLEET_STORE_UNREACHABLE', opening);
    assert.equal(JSON.stringify([error, error.message]).includes('hush'), false);
  });
});

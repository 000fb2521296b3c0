// Transactions that conflict with another writer: the number of retries, the number of waits, and errors without a retry.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { WritError } from '../../../../src/core/errors.js';
import { openFleetStore } from '../../../../src/fleet/store/open-store.js';
import { storeError } from '../../../../src/fleet/store/store-errors.js';
import { whileBusy } from '../../../../src/fleet/store/transact.js';
import { createToken, listTokens } from '../../../../src/fleet/tokens/tokens.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const overtaken = (): WritError => storeError('40001', 'a host was changed meanwhile');
const locked = (): WritError => storeError('SQLITE_BUSY', 'database is locked');

describe('a transaction that conflicts with another writer', () => {
  let runs = 0;
  const after = (failures: number, why: () => WritError) => (): Promise<number> => {
    runs++;
    return runs <= failures ? Promise.reject(why()) : Promise.resolve(runs);
  };

  it('is run again, at most ten times', async () => {
    runs = 0;
    assert.equal(await whileBusy(after(9, overtaken)), 10);
    runs = 0;
    await rejectsCode('FLEET_STORE_BUSY', whileBusy(after(10, overtaken)));
    assert.equal(runs, 10);
  });

  it('is run again only once where it waited for its whole time, because a client waits for the answer', async () => {
    runs = 0;
    assert.equal(await whileBusy(after(1, locked)), 2);
    runs = 0;
    await rejectsCode('FLEET_STORE_BUSY', whileBusy(after(2, locked)));
    assert.equal(runs, 2);
  });

  it('is not run again after any other error of the database', async () => {
    let runs = 0;
    const failing = (): Promise<void> => {
      runs++;
      return Promise.reject(new WritError('FLEET_STORE_FAILED', 'no'));
    };
    await rejectsCode('FLEET_STORE_FAILED', whileBusy(failing));
    assert.equal(runs, 1);
  });

  it('creates a token once the other process is done, although its first wait was too short', async () => {
    using dir = tempDir();
    const options = { clock: systemClock, log: silentLog() };
    const one = await openFleetStore(dir.join('store'), options);
    const two = await openFleetStore(dir.join('store'), { ...options, busyTimeoutMs: 200 });
    const made = await one.db.transaction().execute(async (trx) => {
      await trx.updateTable('leases').set({ until_ms: 2 }).execute();
      const making = createToken(two.db, { kind: 'hosts' }, { who: 'store', nowMs: 1 });
      // The first try of the token began before this wait, and fails before its end.
      await rejectsCode('FLEET_STORE_BUSY', two.db.updateTable('leases').set({ until_ms: 1 }).execute());
      return { making };
    });
    const { id } = await made.making;
    assert.deepEqual(
      (await listTokens(one.db)).map((token) => token.id),
      [id],
    );
    await Promise.all([one.close(), two.close()]);
  });
});

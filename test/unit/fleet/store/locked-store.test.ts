// An embedded store that another process keeps locked: all concurrent writers together are refused within two waits, and readers do
// not wait.
import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { openFleetStore } from '../../../../src/fleet/store/open-store.js';
import { SqliteConnection } from '../../../../src/fleet/store/sqlite-connection.js';
import { createToken, listTokens } from '../../../../src/fleet/tokens/tokens.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const busyTimeoutMs = 250;
const writers = 12;

/** Another process has the write lock while `work` runs. */
async function whileLocked(work: (store: Awaited<ReturnType<typeof openFleetStore>>) => Promise<void>) {
  using dir = tempDir();
  const options = { clock: systemClock, log: silentLog() };
  const other = await openFleetStore(dir.join('store'), options);
  const store = await openFleetStore(dir.join('store'), { ...options, busyTimeoutMs });
  // The threads of both readers are started here, so that a slow start is not counted later.
  await Promise.all([listTokens(store.db), listTokens(store.db)]);
  await other.db.transaction().execute(async (trx) => {
    await trx.updateTable('leases').set({ until_ms: 2 }).execute();
    await work(store);
  });
  assert.ok((await createToken(store.db, { kind: 'hosts' }, { who: 'store', nowMs: 1 })).id);
  await Promise.all([other.close(), store.close()]);
}

describe('an embedded store that another process keeps locked', longCase, () => {
  it('refuses all concurrent writers within two waits', () =>
    whileLocked(async ({ db }) => {
      const asked = mock.method(SqliteConnection.prototype, 'executeQuery');
      try {
        const create = () => createToken(db, { kind: 'hosts' }, { who: 'store', nowMs: 1 });
        const refused = Array.from({ length: writers }, () => rejectsCode('FLEET_STORE_BUSY', create()));
        await Promise.all(refused);
        // Each of these would wait for the whole time of a statement; one after the other they would be two dozen waits.
        const waits = asked.mock.calls.filter(({ arguments: [query] }) => query.sql === 'begin immediate');
        assert.equal(waits.length, 2);
      } finally {
        asked.mock.restore();
      }
    }));

  it('answers all readers before any writer', () =>
    whileLocked(async ({ db }) => {
      const ended: string[] = [];
      const create = () => createToken(db, { kind: 'hosts' }, { who: 'store', nowMs: 1 });
      const writing = Array.from({ length: writers }, () =>
        rejectsCode('FLEET_STORE_BUSY', create()).then(() => ended.push('write')),
      );
      const reading = Array.from({ length: 4 }, () => listTokens(db).then(() => ended.push('read')));
      await Promise.all([...reading, ...writing]);
      assert.deepEqual(ended.slice(0, 4), ['read', 'read', 'read', 'read']);
    }));
});

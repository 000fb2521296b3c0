// A newer version migrates the store of a running `writ fleet serve`: the server answers 503, so that no client takes its report for
// stored, and exits with a code, because a restart would find the same store.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { migrate } from '../../../src/fleet/store/migrate.js';
import { migrations } from '../../../src/fleet/store/migrations.js';
import { openFleetStore } from '../../../src/fleet/store/open-store.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { until } from '../../kit/assert/until.js';
import { servedFleet } from '../../kit/fleet/served-fleet.js';

/** Migrates the store, as a server of the next version does at its start. */
async function takeOver(location: string): Promise<void> {
  const store = await openFleetStore(location, { clock: systemClock, log: silentLog() });
  const next = { version: migrations.length + 1, up: async () => undefined };
  await migrate(store.db.withTables(), { id: 'x', nowMs: 1 }, [...migrations, next]);
  await store.close();
}

describe('a fleet server with a store that a newer version migrated', () => {
  it('answers 503 with Retry-After, and exits with FLEET_STORE_NEWER', async () => {
    await using fleet = await servedFleet();
    const host = await fleet.host('web-1');
    assert.equal((await host.report()).status, 200);
    await takeOver(fleet.store);
    const answer = await host.report({ health: 'warning' });
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '5'], await answer.text());
    await until(async () => {
      const healthz = await fetch(new URL('/healthz', fleet.url)).catch(() => undefined);
      return healthz === undefined || (await healthz.text()).includes('FLEET_STORE_NEWER');
    });
    const { exitCode, stderr } = await fleet.server.ended;
    assert.equal(exitCode, 2);
    assert.match(stderr, /error\[FLEET_STORE_NEWER\]: the store has version/);
  });
});

// Which errors end the sweeps of a server, and which ones are retried.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runSweeps } from '../../../../src/fleet/hosts/sweeps.js';
import { silentLog } from '../../../../src/platform/telemetry/silent-log.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { memory, tempDir } from '../../../kit/disk/temp-dir.js';
import { fleetBench } from '../../../kit/fleet/fleet-bench.js';

describe('runSweeps', () => {
  it('tries again after an error of the store that names no newer version', async () => {
    using dir = tempDir(memory());
    const clock = fakeClock();
    await using bench = await fleetBench(dir.join('store'), clock);
    await bench.store.db.schema.dropTable('leases').execute();
    const ended = new AbortController();
    const sleeps: number[] = [];
    const sleep = async (ms: number): Promise<void> => {
      if (sleeps.push(ms) === 3) ended.abort();
    };
    await runSweeps(bench.store, {
      clock: { ...clock, sleep },
      log: silentLog(),
      signal: ended.signal,
      onNewer: ({ code }) => assert.fail(`the server would end because of ${code}`),
    });
    assert.deepEqual(sleeps, [10_000, 10_000, 10_000]);
  });
});

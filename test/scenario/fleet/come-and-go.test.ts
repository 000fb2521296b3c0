// Hosts that come and go: one that is ephemeral leaves every count when its agent ends, one that was set up anew takes the place of
// a silent one of its name and of no other. Real programs on both ends.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/platform/time/clock.js';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { until } from '../../kit/assert/until.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { fleetBench } from '../../kit/fleet/fleet-bench.js';
import { type ServedFleet, servedFleet } from '../../kit/fleet/served-fleet.js';

async function hostOf(
  dir: TempDir,
  fleet: ServedFleet,
  keys: Readonly<Record<string, unknown>>,
): Promise<WritSite> {
  const tokenFile = dir.join('token');
  writeFileSync(tokenFile, await fleet.token('--for', 'hosts'));
  const site = writSite(dir, {
    sandbox: 'off',
    host: { id: 'web-1' },
    fleet: { url: fleet.url, tokenFile, ...keys },
  });
  await site.repository.publish({ 'block.rpz': 'version 1\n' });
  return site;
}

/** Keys of all hosts in this state. */
async function keysIn(fleet: ServedFleet, state: string): Promise<string[]> {
  const run = await runWrit([
    'fleet',
    'hosts',
    '--where',
    `state=${state}`,
    '--store',
    fleet.store,
    '--json',
  ]);
  return (jsonOf(run)['hosts'] as { key: string }[]).map(({ key }) => key);
}

describe('a host that is ephemeral', () => {
  it('is retired when its agent ends in order', async () => {
    await using fleet = await servedFleet();
    using dir = tempDir();
    const site = await hostOf(dir, fleet, { ephemeral: true });
    await using agent = await site.agent();
    await until(async () => (await keysIn(fleet, 'accepted')).length === 1);
    agent.child.kill('SIGTERM');
    await agent.ended;
    assert.deepEqual(await keysIn(fleet, 'accepted'), []);
    assert.equal((await keysIn(fleet, 'retired')).length, 1);
  });
});

describe('a host that replaces', () => {
  it('takes the place of a silent one of its name, which is retired; of one that speaks it takes none', async () => {
    await using fleet = await servedFleet();
    const { key: old } = await fleet.host('web-1');
    {
      // Two intervals of silence, in a server that was there all the time.
      await using bench = await fleetBench(fleet.store, systemClock);
      await bench.store.db.updateTable('hosts').set({ last_seen_ms: 0 }).execute();
      await bench.store.db.updateTable('fleet').set({ accepting_since_ms: 0 }).execute();
    }
    using one = tempDir();
    using two = tempDir();
    using three = tempDir();
    const pull = async (dir: TempDir, keys: Readonly<Record<string, unknown>>) => {
      const { config } = await hostOf(dir, fleet, keys);
      return runWritProcess(['pull', '--config', config]);
    };
    assert.match((await pull(one, {})).stderr, /FLEET_KEY_WAITING/);
    assert.doesNotMatch((await pull(two, { replaces: true })).stderr, /FLEET_/);
    assert.deepEqual(await keysIn(fleet, 'retired'), [old]);
    assert.match((await pull(three, { replaces: true })).stderr, /FLEET_KEY_WAITING/);
    assert.equal((await keysIn(fleet, 'accepted')).length, 1);
    assert.equal((await keysIn(fleet, 'waiting')).length, 2);
  });
});

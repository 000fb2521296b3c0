// Membership of hosts: an ephemeral host leaves every count when its agent ends, and a reinstalled host replaces a silent host of
// its name and no other. Real programs on both ends.
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

describe('an ephemeral host', () => {
  it('is retired when its agent exits in order', async () => {
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

describe('a host with fleet.replaces', () => {
  it('replaces and retires a silent host of its name, and waits when that host reports', async () => {
    await using fleet = await servedFleet();
    const { key: old } = await fleet.host('web-1');
    {
      // Silent for two intervals, on a server that accepted reports all the time.
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

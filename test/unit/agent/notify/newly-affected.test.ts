import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { noteNewlyAffected } from '../../../../src/agent/notify/membership.js';
import { startHost } from '../../../../src/agent/startup/start-host.js';
import type { Host } from '../../../../src/agent/state/host.js';
import type { WorkerGroupConfig } from '../../../../src/core/config/config.js';
import { settle } from '../../../kit/agent/settled-world.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';
import { confirms, type ScriptedDriver, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

const bundles = [{ name: 'one' }, { name: 'two' }];

interface World {
  readonly test: TestHost;
  readonly driver: ScriptedDriver;
  /** The host after a start with another configuration of the group. */
  reopen(config: Partial<WorkerGroupConfig>): Host;
}

/** The worker confirmed generation 1; generation 2 changed `two:f`, which its group did not use. */
async function world(config: Partial<WorkerGroupConfig> = { uses: ['one'] }): Promise<World> {
  const driver = scriptedDriver({ a: confirms });
  const test = testHost({ bundles, groups: { app: { driver, config } } });
  await test.publish('one', { f: '1' }, { serial: 1 });
  await test.publish('two', { f: '1', g: '1' }, { serial: 1 });
  await test.pull();
  await test.publish('two', { f: '2', g: '1' }, { serial: 2 });
  await test.pull();
  const reopen = (more: Partial<WorkerGroupConfig>): Host =>
    test.reopen({ bundles, groups: { app: { driver, config: more } } });
  return { test, driver, reopen };
}

const entryOf = (host: Host) => host.ledger.read().workers['app/a'];

describe('a worker of a group that uses one more bundle', () => {
  it('is pending at the start with that configuration, and is notified of the active generation', async () => {
    const { test, driver, reopen } = await world();
    using _ = test;
    const host = reopen({ uses: ['one', 'two'] });
    await startHost(host, { cycle: 'c-ab', signal: new AbortController().signal });
    assert.deepEqual([entryOf(host)?.state, entryOf(host)?.wanted], ['pending', 2]);
    await settle(host);
    assert.deepEqual([driver.notified, entryOf(host)?.confirmed], [['a 1', 'a 2'], 2]);
  });

  it('is not pending if the files of its group did not change', async () => {
    const { test, reopen } = await world({ uses: ['two'], when: ['g'] });
    using _ = test;
    const host = reopen({ uses: ['one', 'two'], when: ['two:g', 'one:f'] });
    noteNewlyAffected(host);
    assert.deepEqual([entryOf(host)?.state, entryOf(host)?.wanted], ['confirmed', 1]);
  });

  it('is pending if the generation of its last notification is missing', async () => {
    const { test, reopen } = await world();
    using _ = test;
    const host = reopen({ uses: ['one'] });
    setLedger(host.ledger, { workers: { 'app/a': { ...entryOf(host)!, wanted: 77 } } });
    noteNewlyAffected(host);
    assert.deepEqual([entryOf(host)?.state, entryOf(host)?.wanted], ['pending', 2]);
  });

  it('is pending too if the new `when` covers the change', async () => {
    const { test, reopen } = await world({ uses: ['two'], when: ['g'] });
    using _ = test;
    const host = reopen({ uses: ['two'], when: ['f'] });
    noteNewlyAffected(host);
    assert.equal(entryOf(host)?.state, 'pending');
  });
});

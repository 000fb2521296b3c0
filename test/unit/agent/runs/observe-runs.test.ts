import assert from 'node:assert/strict';
import { pid } from 'node:process';
import { describe, it } from 'node:test';
import { observeRuns } from '../../../../src/agent/runs/observe-runs.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { findProcess } from '../../../../src/platform/process/processes.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { testHost } from '../../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

describe('observeRuns', () => {
  it('takes the start of a process from its name only if the kernel confirms it', async () => {
    const { startTicks = 0 } = findProcess(pid) ?? {};
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { f: '1' }, { serial: 1 });
    await test.pull();
    const ticksOf = async (process: string): Promise<number | undefined> => {
      driver.processes.set('a', process);
      return (await observeRuns(test.host, () => true)).get('app/a')?.startTicks;
    };
    assert.equal(await ticksOf(`${pid}@${startTicks}`), startTicks);
    assert.equal(await ticksOf(`${pid}@1764000000`), undefined, 'a time of supervisord');
    assert.equal(await ticksOf('7'), undefined);
  });

  it('finds the first observation of a worker with a host', async () => {
    const driver = scriptedDriver({ a: confirms });
    driver.processes.set('a', '7');
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { f: '1' }, { serial: 1 });
    await test.pull();
    const isFirst = async (host: Host) => (await observeRuns(host, () => true)).get('app/a')?.isFirst;
    const restarted = { ...test.host, observedWorkers: new Set<string>() };
    assert.deepEqual([await isFirst(restarted), await isFirst(restarted)], [true, false]);
    setLedger(test.host.ledger, { workers: {} });
    await isFirst(restarted);
    assert.equal(restarted.observedWorkers.size, 0, 'a worker that the ledger has forgotten');
  });

  it('records the end of the known process if its driver finds no process and no dead worker', async () => {
    const driver = Object.assign(scriptedDriver({ a: confirms }), { liveness: async () => 'alive' as const });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { f: '1' }, { serial: 1 });
    await test.pull();
    const endedOf = async (known: string): Promise<boolean | undefined> => {
      const runs = { process: known, sinceMs: 0, watchedSinceMs: 0, bootId: 'b', ends: [] };
      setLedger(test.host.ledger, { runs: { 'app/a': runs } });
      driver.processes.delete('a');
      return (await observeRuns(test.host, () => true)).get('app/a')?.hasEnded;
    };
    assert.equal(await endedOf('4194305@7'), true, 'no kernel has a pid above 4194304');
    assert.equal(await endedOf(`${pid}@7`), undefined, 'a process with this pid runs');
    assert.equal(await endedOf('1764000000000.1'), undefined, 'a connection');
  });

  it('records the end of a process without the liveness check of the driver', async () => {
    let questions = 0;
    const liveness = async () => {
      questions += 1;
      return 'dead' as const;
    };
    const driver = Object.assign(scriptedDriver({ a: confirms }), { liveness });
    using test = testHost({ groups: { app: { driver } } });
    await test.publish('access', { f: '1' }, { serial: 1 });
    await test.pull();
    const questionsWith = async (known: string): Promise<number> => {
      const runs = { process: known, sinceMs: 0, watchedSinceMs: 0, bootId: 'b', ends: [] };
      setLedger(test.host.ledger, { runs: { 'app/a': runs } });
      driver.processes.delete('a');
      questions = 0;
      await observeRuns(test.host, () => true);
      return questions;
    };
    assert.equal(await questionsWith('4194305@7'), 0);
    assert.equal(await questionsWith(`${pid}@7`), 1);
  });
});

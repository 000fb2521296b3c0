import assert from 'node:assert/strict';
import { pid } from 'node:process';
import { describe, it } from 'node:test';
import { observeRuns } from '../../../../src/agent/runs/observe-runs.js';
import { findProcess } from '../../../../src/platform/process/processes.js';
import { testHost } from '../../../kit/host/test-host.js';
import { confirms, scriptedDriver } from '../../../kit/workers/scripted-driver.js';

describe('observeRuns', () => {
  it('reads the start of a process from its name only where the kernel agrees', async () => {
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
});

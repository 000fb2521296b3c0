// A worker that is dead within a bake time: its unit has failed without a restart, or a person has stopped it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withWorkers } from '../../../src/agent/notify/worker-ledger.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { confirms } from '../../kit/workers/scripted-driver.js';

const second = 1000;
const reset = { driver: 'scripted', options: {}, timeoutMs: second, min: 1 };

function gaveUp({ test }: BakingHost): string[] {
  const agent = { version: '', state: 'run', contact: { contact: {} }, problems: [] } as const;
  const { problems } = statusReport(test.host, agent);
  return problems.filter(({ code }) => code === 'SUPERVISOR_GAVE_UP').map(({ message }) => message);
}

/** Records the worker as departed, as after an observation of its set without it. */
function leaveSet({ test: { host } }: BakingHost): void {
  const { ledger, clock } = host;
  const gone = Object.entries(ledger.read().workers).map(
    ([key, one]) => [key, { ...one, goneAtMs: clock.nowMs() }] as const,
  );
  ledger.write(withWorkers(ledger.read(), gone));
}

describe('a release within its bake time', () => {
  for (const [how, active] of [
    ['abnormal', '1'],
    ['clean', '2'],
    ['unrecorded', '2'],
  ] as const)
    it(`is ${active === '1' ? 'rolled back' : 'kept'} when its worker is dead and the record of its exit is ${how}`, async () => {
      using baking = bakingHost(supervisedDriver(['a']));
      await baking.take(1);
      await baking.pass(bakeMs + 10 * second);
      await baking.take(2);
      await baking.pass(10 * second);
      baking.driver.replace('a', how);
      // Its unit has failed without a restart: it is no longer listed at the next observation of its record.
      baking.driver.processes.delete('a');
      leaveSet(baking);
      await baking.pass(2 * second);
      assert.equal(baking.active(), active);
    });

  it(
    'is rolled back when its worker is dead at most observations, and another process at each of the others',
    longCase,
    async () => {
      using baking = bakingHost(supervisedDriver(['a'], 'unrecorded'));
      await baking.take(1);
      await baking.pass(bakeMs + 10 * second);
      await baking.take(2);
      await baking.pass(10 * second);
      for (let crash = 0; crash < 5; crash += 1) {
        baking.driver.processes.delete('a');
        leaveSet(baking);
        await baking.pass(8 * second);
        if (baking.active() === '1') break;
        baking.driver.replace('a', 'unrecorded');
        await baking.pass(2 * second);
      }
      assert.deepEqual([baking.active(), baking.restores.length], ['1', 1]);
    },
  );
});

describe('a dead worker without further restarts by its supervisor', longCase, () => {
  it('is reported with the command that starts it, until it runs again', async () => {
    const failure = {
      hasGivenUp: 'yes',
      text: 'app.service is failed',
      command: 'systemctl start app.service',
    } as const;
    const driver = supervisedDriver(['a']);
    using baking = bakingHost(driver, { groups: { app: { config: { reset } } } });
    await baking.take(1);
    await baking.pass(bakeMs + 70 * second);
    Object.assign(driver, { failure: async () => failure });
    driver.processes.delete('a');
    driver.workers.delete('a');
    leaveSet(baking);
    await baking.pass(70 * second);
    assert.deepEqual(gaveUp(baking), [
      'app/a: app.service is failed; start it with: systemctl start app.service',
    ]);
    driver.workers.set('a', confirms);
    driver.processes.set('a', '900');
    await baking.test.pull();
    await baking.pass(70 * second);
    assert.deepEqual(gaveUp(baking), []);
  });
});

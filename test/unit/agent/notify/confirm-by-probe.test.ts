// Probes before and after the notification of pending workers: which workers need no notification, and which still do.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { withWantedGeneration } from '../../../../src/agent/notify/worker-ledger.js';
import { codes, entryOf, probe, settle, settledWorld } from '../../../kit/agent/settled-world.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { confirms, unreachable } from '../../../kit/workers/scripted-driver.js';

describe('a group with a probe', () => {
  it('is not notified after a restart that lost the answers, if its probe passes', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: confirms }, probe('true'));
    using _ = test;
    const { host } = test;
    setLedger(host.ledger, { workers: {} });
    const { results } = await settle(test.reopen());
    assert.deepEqual(driver.notified, []);
    assert.deepEqual(
      results.map((one) => [one.worker, one.state, one.notificationId]),
      [
        ['a', 'confirmed', undefined],
        ['b', 'confirmed', undefined],
      ],
    );
  });

  it('is notified if its probe fails', async () => {
    const { test, driver } = await settledWorld({ a: confirms }, probe('test ! -e /nowhere || exit 1'));
    using _ = test;
    const { host } = test;
    setLedger(host.ledger, { workers: {} });
    const [group] = test.reopen().groups;
    const groups = [{ ...group!, config: { ...group!.config, ...probe('exit 1') } }];
    const result = await settle({ ...test.reopen(), groups });
    assert.deepEqual([driver.notified, codes(result)], [['a 1'], ['PROBE_FAILED', 'WORKER_UNREACHABLE']]);
  });

  it('is notified of a generation that a move did not notify it of, because the restore may be incomplete', async () => {
    const { test, driver } = await settledWorld({ a: confirms }, probe('true'));
    using _ = test;
    const { host } = test;
    host.ledger.write(
      withWantedGeneration(host.ledger.read(), host.groups, {
        generation: 2,
        nowMs: 1,
        verbOf: () => 'reset',
      }),
    );
    host.ledger.write(
      withWantedGeneration(host.ledger.read(), host.groups, {
        generation: 1,
        nowMs: 2,
        verbOf: () => 'reset',
      }),
    );
    await settle(host);
    assert.deepEqual(driver.notified, ['a 1']);
  });

  it('is probed before a worker that timed out is notified again, because it may use the generation', async () => {
    const { test, driver } = await settledWorld({ a: unreachable }, probe('true'));
    using _ = test;
    const restarted = test.reopen();
    await settle(restarted);
    assert.deepEqual([driver.notified, restarted.ledger.read().workers['app/a']?.state], [[], 'confirmed']);
  });

  it('does not confirm a worker if another one could have answered the probe', async () => {
    const { test, driver } = await settledWorld({ a: confirms, b: confirms }, probe('true'));
    using _ = test;
    driver.processes.set('b', 'second-b');
    driver.workers.set('b', unreachable);
    await settle(test.host);
    assert.deepEqual([driver.notified, entryOf(test, 'app/b')?.state], [['b 1'], 'unreachable']);
  });

  it('reports a refusal if its probe fails for a pending worker, which stays pending', async () => {
    const { test, driver } = await settledWorld({ a: unreachable, b: confirms }, probe('true'));
    using _ = test;
    driver.workers.set('a', () => ({ kind: 'notified', text: 'signalled' }));
    const groups = test.host.groups.map((one) => ({ ...one, config: { ...one.config, ...probe('exit 3') } }));
    const refusals: string[] = [];
    await settle({ ...test.host, groups }, { onRefused: async (error) => void refusals.push(error.code) });
    assert.deepEqual([refusals, entryOf(test, 'app/a')?.state], [['PROBE_FAILED'], 'unreachable']);
  });
});

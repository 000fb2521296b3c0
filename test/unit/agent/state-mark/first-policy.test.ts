// The first policy of a host, killed before and after each operation from its swap on: the next process finds nothing vanished, and
// a state directory that is emptied then is no new host. The operations are read from a run, so a new one gets its cases too.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../../src/agent/cycle/sync-cycle.js';
import { findVanished, openStateMark } from '../../../../src/agent/state-mark/state-mark.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { type OperationTrap, operationTrap } from '../../../kit/disk/operation-trap.js';
import { type TestHost, testHost } from '../../../kit/host/test-host.js';

const boot = 'boot-1';

async function freshHost(): Promise<TestHost> {
  const test = testHost();
  await test.publish('access', { 'a.yaml': 'version: 1\n' }, { serial: 1, revision: 'one' });
  return test;
}

async function pull(test: TestHost, trap: OperationTrap): Promise<void> {
  const { paths } = test.host;
  const stateMark = openStateMark(paths, createDurableFs(trap), boot);
  const host = { ...test.reopen({ observer: trap }), stateMark };
  await syncCycle(host, {
    cycle: 'c-01',
    trigger: 'poll',
    force: 'no',
    signal: new AbortController().signal,
  });
}

async function operations(): Promise<readonly string[]> {
  using test = await freshHost();
  const trap = operationTrap();
  await pull(test, trap);
  return trap.seen;
}

describe('a host that is killed at its first policy', async () => {
  const labels = await operations();
  const first = labels.findIndex((op) => op.startsWith('swap.'));
  assert.ok(first > 0, labels.join());
  for (const [index, label] of labels.entries()) {
    if (index < first) continue;
    for (const when of ['before', 'after'] as const)
      it(`has a state directory that is known as soon as the policy is active: ${when} ${label} (${index})`, async () => {
        using test = await freshHost();
        const { paths } = test.host;
        const trap = operationTrap();
        trap.arm(index, when);
        await pull(test, trap).catch(() => undefined);
        assert.ok(trap.isSprung());
        assert.equal(findVanished(paths, boot)?.message, undefined);
        if (!fs.existsSync(paths.current)) return;
        fs.renameSync(paths.state, `${paths.state}.away`);
        fs.mkdirSync(paths.state);
        assert.equal(findVanished(paths, boot)?.facts['because'], 'empty');
      });
  }
});

// A repair that is killed between two of its changes of the disk: the next start ends with an intact policy.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { examineActive } from '../../../src/agent/integrity/examine-active.js';
import { repairActive } from '../../../src/agent/integrity/repair.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import { unboundedPace } from '../../../src/platform/time/rate-limit.js';
import { longCase } from '../../kit/assert/long-case.js';
import { Killed, type OperationTrap, operationTrap } from '../../kit/disk/operation-trap.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';

const signal = new AbortController().signal;

/** Generation 1 is active and damaged. */
async function damagedHost(): Promise<TestHost> {
  const test = testHost();
  await test.publish('access', { 'policy.yaml': 'version: 1\n', 'views/a': 'a\n' }, { serial: 1 });
  assert.equal((await test.pull()).outcome, 'activated');
  fs.writeFileSync(join(test.host.paths.current, 'access/policy.yaml'), 'VERSION: 1\n');
  return test;
}

async function repairUnder(test: TestHost, trap: OperationTrap): Promise<void> {
  const host = test.reopen({ observer: trap });
  try {
    await repairActive(host, { cycle: 'c-ab', signal, download: 'no' });
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
  }
}

async function assertMended(host: Host, moment: string): Promise<void> {
  const { damage } = await startHost(host, { cycle: 'c-ac', signal });
  assert.equal(damage, undefined, `${moment}: ${damage?.message}`);
  const found = await examineActive(host, { contents: 'digests', pace: unboundedPace(signal) });
  assert.deepEqual(found?.damage, [], moment);
  assert.equal(fs.readFileSync(join(host.paths.current, 'access/policy.yaml'), 'utf8'), 'version: 1\n');
  assert.deepEqual(fs.readdirSync(host.paths.staging), [], moment);
  assert.equal(fs.existsSync(host.paths.journal), false, moment);
}

describe('a repair that is killed', longCase, () => {
  it('between two changes of the disk leaves a state that the next start repairs', async () => {
    using whole = await damagedHost();
    const untouched = operationTrap();
    await repairUnder(whole, untouched);
    const operations = untouched.seen;
    assert.ok(operations.length > 20, operations.join(' '));
    for (const [index, op] of operations.entries()) {
      // A kill after one change is one before the next. Of many equal operations every third one is tried.
      const isOfTheSwap = /swap|commit|ledger|flush\.generation|flush\.record-/.test(op);
      if (!isOfTheSwap && index % 3 > 0) continue;
      using test = await damagedHost();
      const trap = operationTrap();
      trap.arm(index, 'before');
      await repairUnder(test, trap);
      assert.ok(trap.isSprung(), `${op} (${index}) was not reached`);
      // After a crash the start reads all files.
      fs.mkdirSync(join(test.host.paths.staging, 'c-dead'), { recursive: true });
      await assertMended(test.reopen(), `${op} (${index})`);
    }
  });
});

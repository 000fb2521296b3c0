// The disk becomes full between the swap and the commit: the release is active, its workers use it, and it bakes in memory. It is
// taken back when it fails, and it is committed once the disk has space.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { recordPendingRestore } from '../../../src/agent/daemon/pending-restore.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type BakingHost, bakeMs, bakingHost, supervisedDriver } from '../../kit/host/baking-host.js';
import { confirms } from '../../kit/workers/scripted-driver.js';

const second = 1000;

interface Scene extends Disposable {
  readonly host: BakingHost;
  readonly disk: { isFull: boolean };
}

/** Release 1 has settled; the disk is full from the commit of release 2 on. */
async function fullAtCommit(): Promise<Scene> {
  const disk = { isFull: false };
  const driver = supervisedDriver(['a']);
  let isNotified = false;
  driver.workers.set('a', (generation) => {
    isNotified = generation === 2;
    return confirms(generation);
  });
  const host = bakingHost(driver, {
    observer: {
      // What the worker said is written first, and the commit is the write after it.
      after: ({ op }) => {
        if (op !== 'ledger:flush-directory' || !isNotified) return;
        isNotified = false;
        disk.isFull = true;
      },
      before: ({ op }) => {
        if (disk.isFull && /:write$|:create$|append|make|prepare/.test(op) && op !== 'swap.link:create')
          throw Object.assign(new Error('full'), { code: 'ENOSPC' });
      },
    },
  });
  await host.take(1);
  await host.pass(bakeMs + 70 * second);
  assert.equal((await host.take(2)).outcome, 'failed');
  assert.deepEqual([host.active(), host.test.host.restoreMemory.uncommitted], ['2', 2]);
  return { host, disk, [Symbol.dispose]: () => host[Symbol.dispose]() };
}

const record = ({ test }: BakingHost) =>
  recordPendingRestore({
    ...{ host: () => test.host, stop: new AbortController().signal },
    ...{ note: () => undefined, onChange: () => undefined },
  });

const hasJournal = ({ test }: BakingHost): boolean => fs.existsSync(test.host.paths.journal);

describe('a release whose commit the disk could not take', () => {
  it('bakes, and is taken back when its worker dies', async () => {
    using scene = await fullAtCommit();
    const { host } = scene;
    assert.equal(host.test.host.ledger.read().bakes?.['access']?.serial, 2);
    await host.pass(10 * second);
    host.driver.replace('a');
    await host.pass(4 * second);
    assert.deepEqual([host.active(), host.restores.length], ['1', 1]);
  });

  it('is committed as soon as the disk has space, and settles', longCase, async () => {
    using scene = await fullAtCommit();
    const { host, disk } = scene;
    await record(host);
    assert.deepEqual([hasJournal(host), host.test.host.restoreMemory.uncommitted], [true, 2]);
    disk.isFull = false;
    await record(host);
    assert.deepEqual([hasJournal(host), host.test.host.restoreMemory.uncommitted], [false, undefined]);
    const reopened = host.test.reopen({ observer: {} });
    assert.equal(reopened.ledger.read().bakes?.['access']?.serial, 2);
    await host.pass(bakeMs + 4 * second);
    assert.equal(host.test.host.ledger.read().settledReleases?.['access']?.[0]?.serial, 2);
  });

  it('is committed by the next start of the agent', longCase, async () => {
    using scene = await fullAtCommit();
    const { host } = scene;
    const reopened = host.test.reopen({ observer: {}, groups: { app: { driver: host.driver } } });
    await startHost(reopened, { cycle: 'c-ab', signal: new AbortController().signal });
    assert.equal(hasJournal(host), false);
    assert.equal(reopened.ledger.read().bakes?.['access']?.serial, 2);
  });

  it('leaves the journal of another move alone', async () => {
    using scene = await fullAtCommit();
    const { host, disk } = scene;
    disk.isFull = false;
    await host.take(3);
    fs.writeFileSync(host.test.host.paths.journal, 'of another move');
    await record(host);
    assert.equal(hasJournal(host), true);
    assert.equal(host.test.host.restoreMemory.uncommitted, undefined);
  });
});

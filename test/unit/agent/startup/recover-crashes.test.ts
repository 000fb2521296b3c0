// A candidate that crashes repeatedly is blocked, but no other bundle is; and recovery from an unreadable journal.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { syncCycle } from '../../../../src/agent/cycle/sync-cycle.js';
import { activeGenerationNumber } from '../../../../src/agent/generations/generations.js';
import { resume } from '../../../../src/agent/select/pause.js';
import type { CrashCount } from '../../../../src/agent/state/crash-rules.js';
import type { Host } from '../../../../src/agent/state/host.js';
import { writeJournal } from '../../../../src/agent/state/journal.js';
import { cycleOn } from '../../../kit/agent/cycle-on.js';
import {
  codes,
  crashCount,
  crashed,
  journalOf,
  policy,
  recover,
  signal,
} from '../../../kit/host/crashed-host.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { testHost } from '../../../kit/host/test-host.js';
import { confirms, scriptedDriver, unreachable } from '../../../kit/workers/scripted-driver.js';

describe('a candidate that crashes', () => {
  /** Swaps to the newest release and crashes after the move of the link. */
  async function crashInSwap(host: Host, crashes?: CrashCount): Promise<void> {
    const { paths, durable } = host;
    assert.equal((await cycleOn(host)).outcome, 'activated');
    const to = activeGenerationNumber(paths)!;
    setLedger(host.ledger, { committedCycle: undefined, ...(crashes ? { crashes } : {}), lastKnownGood: 1 });
    const base = { writ: 1, cycle: 'c-0', from: 1, startedAtMs: 0, kind: 'update' } as const;
    writeJournal(paths, durable, { ...base, to, direction: 'forward' });
  }

  it('is recognized in its next generation after an undo, and blocked at the third crash', async () => {
    using test = testHost();
    for (const serial of [1, 2]) {
      await test.publish('access', policy(serial), { serial });
      if (serial === 1) await test.pull();
    }
    await crashInSwap(test.host);
    // The first start crashes while it finishes the swap, so the second one undoes the swap.
    const first = test.reopen();
    setLedger(first.ledger, { ...crashCount(test, 1) });
    assert.deepEqual(codes(await recover(test.reopen())), ['failed', 'INTERRUPTED']);
    const again = test.reopen();
    const { crashes } = again.ledger.read();
    assert.equal(crashes?.count, 2);
    await crashInSwap(again, crashes);
    const third = test.reopen();
    assert.deepEqual(codes(await recover(third)), ['blocked', 'ACTIVATION_BLOCKED']);
    assert.equal(activeGenerationNumber(third.paths), 1);
    const polled = await cycleOn(third);
    assert.deepEqual([polled.exitCode, polled.problems[0]?.code], [6, 'ACTIVATION_BLOCKED']);
  });

  it('is tried again after `writ resume`, with a new count', async () => {
    const { test, host } = await crashed({}, 2, 2);
    using _ = test;
    await recover(host);
    assert.equal((await cycleOn(host)).outcome, 'blocked');
    resume(host);
    assert.equal(host.ledger.read().crashes, undefined);
    assert.equal((await cycleOn(host)).outcome, 'activated');
  });

  it('is tried by force, and no longer blocked after the commit', async () => {
    const { test, host } = await crashed({}, 2, 2);
    using _ = test;
    await recover(host);
    const forced = await syncCycle(host, { cycle: 'c-f', trigger: 'force', force: 'yes', signal });
    assert.equal(forced.result.outcome, 'activated');
    assert.deepEqual([host.ledger.read().blocked, host.ledger.read().crashes], [undefined, undefined]);
  });

  it('stays blocked while another bundle is updated', async () => {
    const driver = scriptedDriver({ a: confirms });
    using test = testHost({
      bundles: [{ name: 'access' }, { name: 'dns-edge' }],
      groups: { app: { driver } },
    });
    const same = { 'policy.yaml': 'version: 2\n' };
    await test.publish('access', policy(1), { serial: 1 });
    await test.publish('dns-edge', policy(1), { serial: 1 });
    await test.pull();
    await test.publish('access', same, { serial: 2 });
    const { digest } = test.host.client.knownTarget('access', 'stable')?.release.manifest ?? {};
    assert.ok(digest);
    await test.pull();
    journalOf(test, { from: 1, to: 2 });
    setLedger(test.host.ledger, { ...crashCount(test, 2) });
    const host = test.reopen();
    assert.deepEqual(codes(await recover(host)), ['blocked', 'ACTIVATION_BLOCKED']);
    // The same files in another bundle are another release.
    await test.publish('dns-edge', same, { serial: 2 });
    const result = await cycleOn(host);
    assert.deepEqual(
      result.bundles.map((one) => [one.bundle, one.outcome]),
      [
        ['access', 'blocked'],
        ['dns-edge', 'activated'],
      ],
    );
    const { blocked } = host.ledger.read();
    assert.deepEqual(Object.keys(blocked?.releases ?? {}), ['access']);
    assert.equal((await cycleOn(host)).bundles[0]?.outcome, 'blocked', 'and stays blocked');
  });
});

describe('a journal that is damaged', () => {
  const broken = ['', '{', '[]', '{"writ":1,"to":2}', 'x'.repeat(70_000)];

  for (const text of broken) {
    it(`(${text.slice(0, 20)}) is rebuilt from the disk, and an unfinished swap is finished`, async () => {
      const { test, host, driver } = await crashed({}, 2);
      using _ = test;
      setLedger(host.ledger, { lastKnownGood: 1 });
      fs.writeFileSync(host.paths.journal, text);
      assert.deepEqual(codes(await recover(host)), ['activated']);
      assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [2, ['a 2']]);
      assert.equal(fs.readFileSync(`${host.paths.journal}.damaged`, 'utf8'), text);
      assert.equal(fs.existsSync(host.paths.journal), false);
      assert.deepEqual(
        host.ledger.read().notices?.map((one) => one.code),
        ['STATE_REBUILT'],
      );
    });
  }

  it('causes a notification of all workers when the link is at the last known good generation', async () => {
    const { test, host, driver } = await crashed({}, 1);
    using _ = test;
    setLedger(host.ledger, { lastKnownGood: 1 });
    fs.writeFileSync(host.paths.journal, '{');
    assert.deepEqual(codes(await recover(host)), ['activated']);
    assert.deepEqual([activeGenerationNumber(host.paths), driver.notified], [1, ['a 1']]);
  });

  it('ends degraded when a worker is unreachable', async () => {
    const { test, host, driver } = await crashed({}, 1);
    using _ = test;
    driver.workers.set('a', unreachable);
    setLedger(host.ledger, { lastKnownGood: 1 });
    fs.writeFileSync(host.paths.journal, '{');
    const result = await recover(host);
    assert.deepEqual([result?.exitCode, ...codes(result)], [4, 'degraded', 'WORKER_UNREACHABLE']);
  });

  it('ends degraded when no worker confirms and the confirmation is required', async () => {
    const { test, driver } = await crashed({}, 1);
    using _ = test;
    driver.workers.set('a', () => ({ kind: 'notified', text: 'signalled' }));
    const host = test.reopen({ groups: { app: { driver, config: { confirm: 'required' } } } });
    setLedger(host.ledger, { lastKnownGood: 1 });
    fs.writeFileSync(host.paths.journal, '{');
    assert.deepEqual(codes(await recover(host)), ['degraded', 'WORKER_UNCONFIRMED']);
  });

  it('is removed when no generation is active', async () => {
    using test = testHost();
    const host = test.reopen();
    fs.writeFileSync(host.paths.journal, '{');
    assert.equal(await recover(host), undefined);
    assert.equal(fs.existsSync(host.paths.journal), false);
  });
});

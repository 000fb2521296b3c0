// What recovery writes before it acts, and what it leaves: counted crashes, blocks, refusals, the journal.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { activeGenerationNumber } from '../../../../src/agent/generations/generations.js';
import { writeJournal } from '../../../../src/agent/state/journal.js';
import type { RefusalEntry } from '../../../../src/agent/state/refusal-rules.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { codes, crashCount, crashed, policy, recover, ruin } from '../../../kit/host/crashed-host.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { confirms } from '../../../kit/workers/scripted-driver.js';

describe('the records of a recovery', () => {
  it('count the crash on disk before a worker is notified of the finished swap', async () => {
    const { test, host, driver } = await crashed({}, 2);
    using _ = test;
    let counted: unknown;
    driver.workers.set('a', (generation) => {
      counted = JSON.parse(fs.readFileSync(host.paths.ledger, 'utf8')).crashes?.count;
      return confirms(generation);
    });
    assert.deepEqual(codes(await recover(host)), ['activated']);
    assert.equal(counted, 1);
    assert.equal(host.ledger.read().crashes, undefined);
  });

  it('drop the refusal of a release that the crashed cycle had committed', async () => {
    const { test, host } = await crashed({}, 2);
    using _ = test;
    const { manifest } = test.host.client.knownTarget('access', 'stable')!.release;
    const refusal: RefusalEntry = {
      bundle: 'access',
      channel: 'stable',
      serial: 2,
      manifestDigest: manifest.digest,
      code: 'WORKER_REFUSED',
      message: 'no',
      atMs: 1,
      retryAtMs: 2,
      tries: 1,
      refusedWith: [],
    };
    host.refusals.write({ writ: 1, refusals: [refusal] });
    setLedger(host.ledger, { committedCycle: 'c-0' });
    assert.equal(await recover(host), undefined);
    assert.deepEqual(test.reopen().refusals.read().refusals, []);
  });

  it('report the block of a restore that failed without a crash, and count no crash', async () => {
    const { test, host } = await crashed({ direction: 'back' }, 2);
    using _ = test;
    const releases = crashCount(test, 0).crashes.manifestDigests;
    const blocked = { reason: 'the rollback failed', atMs: 1, manifestDigests: [], releases };
    setLedger(host.ledger, { blocked });
    const result = await recover(host);
    assert.deepEqual(codes(result), ['blocked', 'ACTIVATION_BLOCKED']);
    assert.equal(result?.problems[0]?.message, 'the rollback failed');
    assert.deepEqual([host.ledger.read().blocked, host.ledger.read().crashes], [blocked, undefined]);
    assert.equal(activeGenerationNumber(host.paths), 1);
  });

  it('count a start that is killed during the restore of a block', async () => {
    const { test, host, driver } = await crashed({ direction: 'back' }, 2);
    using _ = test;
    const releases = crashCount(test, 0).crashes.manifestDigests;
    setLedger(host.ledger, { blocked: { reason: 'no', atMs: 1, manifestDigests: [], releases } });
    let counted: unknown;
    driver.workers.set('a', (generation) => {
      counted = JSON.parse(fs.readFileSync(host.paths.ledger, 'utf8')).crashes?.count;
      return confirms(generation);
    });
    await recover(host);
    assert.equal(counted, 1);
  });

  it('keep the time and the reason of an existing block', async () => {
    const { test, host } = await crashed({}, 2, 2);
    using _ = test;
    assert.deepEqual(codes(await recover(host)), ['blocked', 'ACTIVATION_BLOCKED']);
    const { blocked } = host.ledger.read();
    await test.clock.advance(60_000);
    const base = { writ: 1, cycle: 'c-0', startedAtMs: 0, kind: 'update' } as const;
    writeJournal(host.paths, host.durable, { ...base, from: 1, to: 2, direction: 'back' });
    const again = test.reopen();
    assert.deepEqual(codes(await recover(again)), ['blocked', 'ACTIVATION_BLOCKED']);
    assert.ok(blocked !== undefined);
    assert.deepEqual(again.ledger.read().blocked, blocked);
  });

  it('drop the crashes after all workers were notified of the same generation again', async () => {
    const { test, host, driver } = await crashed({ from: 2, direction: 'back' }, 2);
    using _ = test;
    assert.deepEqual(codes(await recover(host)), ['activated']);
    assert.deepEqual(driver.notified, ['a 2']);
    assert.equal(host.ledger.read().crashes, undefined);
  });

  it('keep the journal when the link cannot be restored', async () => {
    const { test } = await crashed({}, 2, 1);
    using _ = test;
    const failing = test.reopen({
      observer: {
        before: ({ op }) => {
          if (op === 'swap.link:rename') throw Object.assign(new Error('injected'), { code: 'EIO' });
        },
      },
    });
    await rejectsCode('DISK_FAILED', recover(failing));
    assert.equal(activeGenerationNumber(failing.paths), 2);
    assert.ok(fs.existsSync(failing.paths.journal));
    assert.equal(failing.ledger.read().blocked, undefined);
  });
});

describe('an undo to a generation that is damaged', longCase, () => {
  it('moves to an older generation, not to the one that the swap brought', async () => {
    const { test } = await crashed({}, 2);
    using _ = test;
    await recover(test.reopen());
    await test.publish('access', policy(3), { serial: 3 });
    const { paths, durable } = test.host;
    assert.equal((await test.pull()).generation, 3);
    const host = test.reopen();
    setLedger(host.ledger, { ...crashCount(test, 1), lastKnownGood: 3 });
    const base = { writ: 1, cycle: 'c-0', startedAtMs: 0, kind: 'update', direction: 'forward' } as const;
    writeJournal(paths, durable, { ...base, from: 2, to: 3 });
    ruin(test, 2);
    assert.deepEqual(codes(await recover(test.reopen())), ['failed', 'INTERRUPTED', 'STATE_DAMAGED']);
    assert.equal(activeGenerationNumber(paths), 1);
  });
});

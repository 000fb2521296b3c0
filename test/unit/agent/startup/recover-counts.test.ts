// What a recovery has on disk before it acts, and what it leaves: counted crashes, blocks, refusals, the journal.

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { activeGenerationNumber } from '../../../../src/agent/generations/generations.js';
import { writeJournal } from '../../../../src/agent/state/journal.js';
import type { RefusalEntry } from '../../../../src/agent/state/refusal-rules.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { codes, crashCount, crashed, policy, recover, ruin } from '../../../kit/host/crashed-host.js';
import { setLedger } from '../../../kit/host/set-ledger.js';
import { confirms } from '../../../kit/workers/scripted-driver.js';

describe('what a recovery notes', () => {
  it('counts the crash on disk before anybody is told of the way forward', async () => {
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

  it('forgets the refusal of what a commit had made active before it died', async () => {
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

  it('reports a restore that failed without a crash as its block, and counts no crash', async () => {
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

  it('counts a start that is killed in the restore of a block', async () => {
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

  it('keeps the time and the reason of a block that stands already', async () => {
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

  it('forgets the crashes when the same generation was told to everybody again', async () => {
    const { test, host, driver } = await crashed({ from: 2, direction: 'back' }, 2);
    using _ = test;
    assert.deepEqual(codes(await recover(host)), ['activated']);
    assert.deepEqual(driver.notified, ['a 2']);
    assert.equal(host.ledger.read().crashes, undefined);
  });

  it('keeps the journal when the link could not be put back', async () => {
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

describe('a way back past a generation that is not whole', () => {
  it('leads to an older one, not to the one that the swap brought', async () => {
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

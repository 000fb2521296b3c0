// A crash in a swap from a damaged generation. The acknowledged release is repaired from retained copies; an older release
// becomes active only when that is impossible.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { activeGenerationNumber } from '../../../../src/agent/generations/generations.js';
import { startHost } from '../../../../src/agent/startup/start-host.js';
import type { Journal } from '../../../../src/agent/state/recovery-rules.js';
import {
  codes,
  crashCount,
  crashed,
  journalOf,
  policy,
  recover,
  ruin,
  signal,
  spoil,
} from '../../../kit/host/crashed-host.js';
import { setLedger } from '../../../kit/host/set-ledger.js';

describe('a crash in a swap from a damaged generation', () => {
  /** Generations 1, 2 and 3 are on disk, the link is at 3, and the move from 2 to 3 is not finished. */
  async function crashedAtThird(
    journal: Partial<Journal> = {},
  ): Promise<Awaited<ReturnType<typeof crashed>>> {
    const made = await crashed({}, 2);
    const { test, driver } = made;
    await recover(test.reopen());
    await test.publish('access', policy(3), { serial: 3 });
    await test.pull();
    journalOf(test, { from: 2, to: 3, ...journal });
    setLedger(test.host.ledger, { committedCycle: undefined, lastKnownGood: 2, previous: 1 });
    driver.notified.length = 0;
    return made;
  }

  it('ends at the same release, repaired, when the new one is damaged too; no worker is notified of the damaged tree', async () => {
    const { test, driver } = await crashedAtThird();
    using _ = test;
    spoil(test, 2);
    spoil(test, 3);
    const { recovered, repaired, damage } = await startHost(test.reopen(), { cycle: 'c-ab', signal });
    assert.deepEqual(codes(recovered?.result), ['failed', 'INTERRUPTED']);
    assert.deepEqual([repaired?.result.outcome, damage], ['activated', undefined]);
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    const active = activeGenerationNumber(test.host.paths);
    assert.ok(active !== undefined && active > 3);
    assert.deepEqual(driver.notified, [`a ${active}`]);
  });

  it('ends at the same release, repaired, at the second crash of an intact new one', async () => {
    const { test, driver } = await crashedAtThird();
    using _ = test;
    spoil(test, 2);
    setLedger(test.host.ledger, { ...crashCount(test, 1) });
    await startHost(test.reopen(), { cycle: 'c-ab', signal });
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    assert.equal(driver.notified.length, 1);
  });

  it('leaves the worker pending when the repair crashes, and the next start repairs the release', async () => {
    const { test, driver } = await crashedAtThird();
    using _ = test;
    spoil(test, 2);
    spoil(test, 3);
    const first = test.reopen();
    await recover(first);
    assert.deepEqual([activeGenerationNumber(first.paths), driver.notified], [2, []]);
    assert.equal(first.ledger.read().workers['app/a']?.state, 'pending');
    const { recovered, repaired } = await startHost(test.reopen(), { cycle: 'c-ac', signal });
    assert.deepEqual([recovered, repaired?.result.outcome], [undefined, 'activated']);
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
  });

  const older = {
    'its archive is missing': {},
    'a repair crashed': { journal: { kind: 'repair' } },
    'repair is not permitted': { config: { scrub: { repair: 'no', bytesPerSecond: 1e9 } } },
  } as const satisfies Record<string, { journal?: Partial<Journal>; config?: object }>;
  for (const [name, scene] of Object.entries(older)) {
    it(`ends at an intact older release when ${name}`, async () => {
      const { journal = {}, config = {} }: { journal?: Partial<Journal>; config?: object } = scene;
      const { test } = await crashedAtThird(journal);
      using _ = test;
      if (name === 'its archive is missing') ruin(test, 2);
      else spoil(test, 2);
      spoil(test, 3);
      const { recovered } = await startHost(test.reopen({ config }), { cycle: 'c-ab', signal });
      assert.deepEqual(codes(recovered?.result), ['failed', 'INTERRUPTED', 'STATE_DAMAGED']);
      assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    });
  }
});

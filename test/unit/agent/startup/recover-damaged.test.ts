// A crash in a swap, and damage to the generation before it: what was acknowledged is made anew from what the host keeps,
// and an older release comes back only where that cannot be.

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
  /** Generations 1, 2 and 3 are on disk, the link is at 3, and the move from 2 to 3 did not come to its end. */
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

  it('ends at the same release, made anew, where the new one is damaged too; nobody hears of the damaged tree', async () => {
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

  it('ends there too at the second crash of a new one that is whole', async () => {
    const { test, driver } = await crashedAtThird();
    using _ = test;
    spoil(test, 2);
    setLedger(test.host.ledger, { ...crashCount(test, 1) });
    await startHost(test.reopen(), { cycle: 'c-ab', signal });
    assert.equal(test.read('access/policy.yaml'), 'version: 2\n');
    assert.equal(driver.notified.length, 1);
  });

  it('stays pending, and is made anew by the next start, where the repair dies', async () => {
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
    'its archive is gone': {},
    'a repair is what crashed': { journal: { kind: 'repair' } },
    'nothing may be repaired': { config: { scrub: { repair: 'no', bytesPerSecond: 1e9 } } },
  } as const satisfies Record<string, { journal?: Partial<Journal>; config?: object }>;
  for (const [name, scene] of Object.entries(older)) {
    it(`ends at an older one that is whole where ${name}`, async () => {
      const { journal = {}, config = {} }: { journal?: Partial<Journal>; config?: object } = scene;
      const { test } = await crashedAtThird(journal);
      using _ = test;
      if (name === 'its archive is gone') ruin(test, 2);
      else spoil(test, 2);
      spoil(test, 3);
      const { recovered } = await startHost(test.reopen({ config }), { cycle: 'c-ab', signal });
      assert.deepEqual(codes(recovered?.result), ['failed', 'INTERRUPTED', 'STATE_DAMAGED']);
      assert.equal(test.read('access/policy.yaml'), 'version: 1\n');
    });
  }
});

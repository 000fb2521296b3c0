import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type DiskFacts, type Journal, maxAttempts, planRecovery } from '../../src/core/recovery.js';

const journal: Journal = {
  writ: 1,
  cycle: 'c-1',
  from: 1,
  to: 2,
  direction: 'forward',
  attempts: 0,
  startedAtMs: 0,
  kind: 'update',
};
const moved: DiskFacts = { current: 2, readable: [1, 2] };
const notMoved: DiskFacts = { current: 1, readable: [1, 2] };

describe('#planRecovery', () => {
  const table: [string, Journal | undefined, DiskFacts, ReturnType<typeof planRecovery>][] = [
    ['does nothing without a journal', undefined, moved, { action: 'none' }],
    ['forgets a swap whose link never moved', journal, notMoved, { action: 'discard' }],
    [
      'forgets a first activation whose link was never made',
      { ...journal },
      { readable: [2] },
      { action: 'discard' },
    ],
    ['finishes a swap whose link moved', journal, moved, { action: 'finish' }],
    [
      'goes back after one attempt to finish',
      { ...journal, attempts: 1 },
      moved,
      { action: 'undo', block: 'no' },
    ],
    ['blocks after the third attempt', { ...journal, attempts: 2 }, moved, { action: 'undo', block: 'yes' }],
    [
      'goes back when the new generation cannot be read',
      journal,
      { current: 2, readable: [1] },
      { action: 'undo', block: 'no' },
    ],
    ['goes on going back', { ...journal, direction: 'back' }, moved, { action: 'undo', block: 'no' }],
    [
      'tells workers again when the link was back already',
      { ...journal, direction: 'back' },
      notMoved,
      { action: 'undo', block: 'no' },
    ],
  ];
  for (const [name, record, facts, plan] of table) {
    it(name, () => assert.deepEqual(planRecovery(record, facts), plan));
  }

  it('goes forward at most once, whatever crashes how often', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10 }), fc.boolean(), (crashes, linkMoved) => {
        let record = journal;
        const plans = Array.from({ length: crashes }, () => {
          const plan = planRecovery(record, linkMoved ? moved : notMoved);
          record = { ...record, attempts: record.attempts + 1 };
          return plan;
        });
        assert.ok(plans.filter((one) => one.action === 'finish').length <= 1);
        const late = plans.slice(maxAttempts - 1);
        if (linkMoved) assert.ok(late.every((one) => one.action === 'undo' && one.block === 'yes'));
      }),
    );
  });
});

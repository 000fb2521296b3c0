import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type Journal,
  maxCrashes,
  planRecovery,
  type RecoveryFacts,
  type RecoveryPlan,
  type RestoreTarget,
  rebuildJournal,
} from '../../../../src/agent/state/recovery-rules.js';

const journal: Journal = {
  writ: 1,
  cycle: 'c-1',
  from: 1,
  to: 2,
  direction: 'forward',
  startedAtMs: 0,
  kind: 'update',
};
const back: Journal = { ...journal, direction: 'back' };
/** A rebuilt journal if only the active generation is known: workers are notified again. */
const notifying: Journal = { ...back, from: 2 };
/** The link has moved, and all generations are intact. */
const moved: RecoveryFacts = { current: 2, isIntact: true, restoreTarget: 1, isCommitted: false };
const notMoved: RecoveryFacts = { ...moved, current: 1 };
const undo = (to: number | 'nothing', shouldBlock = false, shouldNotify = true) =>
  ({ action: 'undo', to, shouldBlock, shouldNotify }) as const;

describe('#planRecovery', () => {
  type Row = readonly [string, Journal | undefined, RecoveryFacts, number, RecoveryPlan];
  const table: readonly Row[] = [
    ['does nothing without a journal', undefined, moved, 0, { action: 'none' }],
    ['discards a swap that did not move the link', journal, notMoved, 0, { action: 'discard' }],
    ['discards it also after many crashes', journal, notMoved, 9, { action: 'discard' }],
    [
      'only removes the journal of a committed move',
      journal,
      { ...moved, isCommitted: true },
      0,
      { action: 'clear' },
    ],
    [
      'only removes the journal of a committed move, also after many crashes',
      journal,
      { ...moved, isCommitted: true },
      9,
      { action: 'clear' },
    ],
    ['finishes a swap that moved the link', journal, moved, 0, { action: 'finish' }],
    ['undoes the move at the second crash', journal, moved, 1, undo(1)],
    ['blocks the releases at the third crash', journal, moved, 2, undo(1, true)],
    [
      'notifies no worker from the fourth crash on, because a start must end',
      journal,
      moved,
      3,
      undo(1, true, false),
    ],
    [
      'undoes the move when the new generation is damaged',
      journal,
      { ...moved, isIntact: false },
      0,
      undo(1),
    ],
    ['undoes the move to the restore target', journal, { ...moved, restoreTarget: 7 }, 1, undo(7)],
    [
      'removes the link when no generation was active before',
      journal,
      { ...moved, restoreTarget: 'nothing' },
      1,
      undo('nothing'),
    ],
    [
      'does not block the active releases when only notifications are pending',
      notifying,
      { ...moved, restoreTarget: 2 },
      2,
      undo(2),
    ],
    [
      'does not block the active releases at the fourth crash, and notifies no worker',
      notifying,
      { ...moved, restoreTarget: 2 },
      3,
      undo(2, false, false),
    ],
    ['continues a restore', back, moved, 0, undo(1)],
    ['notifies workers again when the link was restored already', back, notMoved, 0, undo(1)],
    ['continues a restore after a commit', back, { ...moved, isCommitted: true }, 0, undo(1)],
    [
      'leaves the link when no generation is intact',
      journal,
      { ...moved, isIntact: false, restoreTarget: 'lost' },
      0,
      { action: 'stay', shouldBlock: false },
    ],
    [
      'leaves the link and blocks the releases at the third crash',
      back,
      { ...moved, isIntact: false, restoreTarget: 'lost' },
      2,
      { action: 'stay', shouldBlock: true },
    ],
  ];
  for (const [name, record, facts, crashes, plan] of table) {
    it(name, () => assert.deepEqual(planRecovery(record, facts, crashes), plan));
  }

  describe('over every combination', () => {
    const cases = combinations();

    it('covers all combinations', () => assert.equal(cases.length, 2 * 4 * 2 * 4 * 2 * 6));

    it('notifies workers only of an intact generation or the restore target', () => {
      for (const { record, facts, plan } of cases) {
        if (plan.action === 'finish') assert.ok(facts.isIntact && facts.current === record.to);
        if (plan.action === 'undo') assert.equal(plan.to, facts.restoreTarget);
      }
    });

    it('finishes a move only at the first crash, and never during a restore', () => {
      for (const { record, crashes, plan } of cases) {
        if (plan.action === 'finish') assert.ok(crashes === 0 && record.direction === 'forward');
      }
    });

    it('never undoes a committed move, and never discards one that workers may know', () => {
      for (const { record, facts, plan } of cases) {
        const behind = record.direction === 'back' || facts.current === record.to;
        if (plan.action === 'discard' || plan.action === 'none') assert.ok(!behind);
        if (plan.action === 'clear') assert.ok(facts.isCommitted && facts.current === record.to);
        if (behind && facts.isCommitted && record.direction === 'forward') assert.equal(plan.action, 'clear');
      }
    });

    it('blocks from the third crash on, and notifies no worker from the fourth on', () => {
      for (const { crashes, plan } of cases) {
        if (plan.action !== 'undo' && plan.action !== 'stay') continue;
        assert.equal(plan.shouldBlock, crashes + 1 >= maxCrashes);
        if (plan.action === 'undo') assert.equal(plan.shouldNotify, crashes + 1 <= maxCrashes);
      }
    });

    it('leaves the link only without a restore target', () => {
      for (const { facts, plan } of cases) {
        if (plan.action === 'stay') assert.equal(facts.restoreTarget, 'lost');
      }
    });
  });
});

interface Case {
  readonly record: Journal;
  readonly facts: RecoveryFacts;
  readonly crashes: number;
  readonly plan: RecoveryPlan;
}

function combinations(): Case[] {
  const cases: Case[] = [];
  for (const record of [journal, back]) {
    for (const current of [undefined, 1, 2, 7]) {
      for (const isIntact of [true, false]) {
        for (const restoreTarget of [1, 7, 'nothing', 'lost'] satisfies RestoreTarget[]) {
          for (const isCommitted of [true, false]) {
            for (let crashes = 0; crashes < 6; crashes += 1) {
              const facts = { isIntact, restoreTarget, isCommitted, ...(current ? { current } : {}) };
              cases.push({ record, facts, crashes, plan: planRecovery(record, facts, crashes) });
            }
          }
        }
      }
    }
  }
  return cases;
}

/** A host as recovery sees it: the facts on its disk, and how often workers were notified since the swap. */
interface Model {
  readonly journal: Journal | undefined;
  readonly current: number;
  readonly crashes: number;
  readonly notified: number;
}

/** @returns the durable operations of a start; a crash can follow each of them */
function stepsOf(model: Model): ((before: Model) => Model)[] {
  const facts = { current: model.current, isIntact: true, restoreTarget: 1, isCommitted: false };
  const plan = planRecovery(model.journal, facts, model.crashes);
  const count = (one: Model): Model => ({ ...one, crashes: one.crashes + 1 });
  const turn = (one: Model): Model => ({ ...one, journal: back });
  const link = (one: Model): Model => ({ ...one, current: 1 });
  const notify = (one: Model): Model => ({ ...one, notified: one.notified + 1 });
  const clear = (one: Model): Model => ({ ...one, journal: undefined });
  switch (plan.action) {
    case 'none':
      return [];
    case 'discard':
    case 'clear':
    case 'stay':
      return [clear];
    case 'finish':
      return [count, notify, clear];
    case 'undo':
      return [count, turn, link, ...(plan.shouldNotify ? [notify] : []), clear];
  }
}

describe('any sequence of crashes', () => {
  /** How many operations each start completes before it crashes. */
  const sequences = fc.array(fc.integer({ min: 0, max: 5 }), { maxLength: 20 });
  const swaps = fc.constantFrom<Model>(
    { journal, current: 1, crashes: 0, notified: 0 },
    { journal, current: 2, crashes: 0, notified: 0 },
    { journal: back, current: 2, crashes: 0, notified: 1 },
    { journal: back, current: 1, crashes: 2, notified: 1 },
  );
  const run = (model: Model, steps: number): Model =>
    stepsOf(model)
      .slice(0, steps)
      .reduce((one, step) => step(one), model);

  it('ends with the first start that does not crash, at the old generation or the new one', () => {
    fc.assert(
      fc.property(swaps, sequences, (begin, crashes) => {
        const crashed = crashes.reduce(run, begin);
        const end = run(crashed, Number.POSITIVE_INFINITY);
        assert.equal(end.journal, undefined);
        assert.ok(end.current === 1 || end.current === 2);
        assert.deepEqual(run(end, Number.POSITIVE_INFINITY), end, 'the next start has nothing to do');
      }),
    );
  });

  it('notifies workers at most maxCrashes times', () => {
    fc.assert(
      fc.property(swaps, sequences, (begin, crashes) => {
        const crashed = crashes.reduce(run, begin);
        assert.ok(crashed.notified <= begin.notified + maxCrashes);
      }),
    );
  });

  it('never continues forward after the restore began', () => {
    fc.assert(
      fc.property(swaps, sequences, (begin, crashes) => {
        let model = begin;
        let wasBack = false;
        for (const steps of crashes) {
          const plan = planRecovery(
            model.journal,
            { current: model.current, isIntact: true, restoreTarget: 1, isCommitted: false },
            model.crashes,
          );
          assert.ok(!(wasBack && plan.action === 'finish'));
          model = run(model, steps);
          wasBack ||= model.journal?.direction === 'back';
        }
      }),
    );
  });
});

describe('#rebuildJournal', () => {
  it('returns undefined when no generation is active', () => {
    assert.equal(rebuildJournal(undefined, 3), undefined);
  });

  it('returns a move from the last known good generation to another active one', () => {
    const { from, to, direction } = rebuildJournal(4, 3)!;
    assert.deepEqual([from, to, direction], [3, 4, 'forward']);
  });

  it('returns a journal without a previous generation for a first activation', () => {
    assert.equal(rebuildJournal(1, undefined)?.from, undefined);
  });

  it('makes recovery notify all workers when the link is at the last known good generation', () => {
    const rebuilt = rebuildJournal(4, 4)!;
    const facts = { current: 4, isIntact: true, restoreTarget: 4, isCommitted: false };
    assert.deepEqual(planRecovery(rebuilt, facts, 0), undo(4));
  });
});

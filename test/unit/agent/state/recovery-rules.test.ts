import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type DiskFacts,
  type Journal,
  maxCrashes,
  planRecovery,
  type RecoveryPlan,
  rebuildJournal,
  type WayBack,
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
/** As it is rebuilt where nothing is known but what is active: workers are told again, nothing else. */
const telling: Journal = { ...back, from: 2 };
/** The link has moved, everything is whole. */
const moved: DiskFacts = { current: 2, isWhole: true, back: 1, isCommitted: false };
const notMoved: DiskFacts = { ...moved, current: 1 };
const undo = (to: number | 'nothing', block: 'yes' | 'no' = 'no', notify: 'yes' | 'no' = 'yes') =>
  ({ action: 'undo', to, block, notify }) as const;

describe('#planRecovery', () => {
  type Row = readonly [string, Journal | undefined, DiskFacts, number, RecoveryPlan];
  const table: readonly Row[] = [
    ['does nothing without a journal', undefined, moved, 0, { action: 'none' }],
    ['forgets a swap whose link never moved', journal, notMoved, 0, { action: 'discard' }],
    ['forgets it however often it crashed before', journal, notMoved, 9, { action: 'discard' }],
    ['asks nobody again who said yes', journal, { ...moved, isCommitted: true }, 0, { action: 'clear' }],
    ['nor after more crashes', journal, { ...moved, isCommitted: true }, 9, { action: 'clear' }],
    ['finishes a swap whose link moved', journal, moved, 0, { action: 'finish' }],
    ['goes back at the second crash', journal, moved, 1, undo(1)],
    ['blocks at the third', journal, moved, 2, undo(1, 'yes')],
    ['tells nobody at the fourth, for a start must end', journal, moved, 3, undo(1, 'yes', 'no')],
    ['goes back when the new generation is not whole', journal, { ...moved, isWhole: false }, 0, undo(1)],
    ['goes back to where the way back leads', journal, { ...moved, back: 7 }, 1, undo(7)],
    [
      'goes back to nothing before a first activation',
      journal,
      { ...moved, back: 'nothing' },
      1,
      undo('nothing'),
    ],
    ['never blocks what is active for a telling that is due', telling, { ...moved, back: 2 }, 2, undo(2)],
    ['nor after more crashes, and then tells nobody', telling, { ...moved, back: 2 }, 3, undo(2, 'no', 'no')],
    ['goes on going back', back, moved, 0, undo(1)],
    ['tells workers again when the link was back already', back, notMoved, 0, undo(1)],
    ['goes back from a commit that somebody took back', back, { ...moved, isCommitted: true }, 0, undo(1)],
    [
      'stays where nothing is whole',
      journal,
      { ...moved, isWhole: false, back: 'lost' },
      0,
      { action: 'stay', block: 'no' },
    ],
    [
      'stays, and blocks at the third crash',
      back,
      { ...moved, isWhole: false, back: 'lost' },
      2,
      { action: 'stay', block: 'yes' },
    ],
  ];
  for (const [name, record, facts, crashes, plan] of table) {
    it(name, () => assert.deepEqual(planRecovery(record, facts, crashes), plan));
  }

  describe('over every combination', () => {
    const cases = combinations();

    it('has them all', () => assert.equal(cases.length, 2 * 4 * 2 * 4 * 2 * 6));

    it('tells workers of nothing but what is whole', () => {
      for (const { record, facts, plan } of cases) {
        if (plan.action === 'finish') assert.ok(facts.isWhole && facts.current === record.to);
        if (plan.action === 'undo') assert.equal(plan.to, facts.back);
      }
    });

    it('goes forward once, and only behind the link', () => {
      for (const { record, crashes, plan } of cases) {
        if (plan.action === 'finish') assert.ok(crashes === 0 && record.direction === 'forward');
      }
    });

    it('never takes back what reached its commit, and never forgets what workers may have been told', () => {
      for (const { record, facts, plan } of cases) {
        const behind = record.direction === 'back' || facts.current === record.to;
        if (plan.action === 'discard' || plan.action === 'none') assert.ok(!behind);
        if (plan.action === 'clear') assert.ok(facts.isCommitted && facts.current === record.to);
        if (behind && facts.isCommitted && record.direction === 'forward') assert.equal(plan.action, 'clear');
      }
    });

    it('blocks from the third crash on, and no sooner; tells nobody from the fourth on', () => {
      for (const { crashes, plan } of cases) {
        if (plan.action !== 'undo' && plan.action !== 'stay') continue;
        assert.equal(plan.block, crashes + 1 >= maxCrashes ? 'yes' : 'no');
        if (plan.action === 'undo') assert.equal(plan.notify, crashes + 1 > maxCrashes ? 'no' : 'yes');
      }
    });

    it('stays only where no way back leads to anything whole', () => {
      for (const { facts, plan } of cases) {
        if (plan.action === 'stay') assert.equal(facts.back, 'lost');
      }
    });
  });
});

interface Case {
  readonly record: Journal;
  readonly facts: DiskFacts;
  readonly crashes: number;
  readonly plan: RecoveryPlan;
}

function combinations(): Case[] {
  const cases: Case[] = [];
  for (const record of [journal, back]) {
    for (const current of [undefined, 1, 2, 7]) {
      for (const isWhole of [true, false]) {
        for (const wayBack of [1, 7, 'nothing', 'lost'] satisfies WayBack[]) {
          for (const isCommitted of [true, false]) {
            for (let crashes = 0; crashes < 6; crashes += 1) {
              const facts = { isWhole, back: wayBack, isCommitted, ...(current ? { current } : {}) };
              cases.push({ record, facts, crashes, plan: planRecovery(record, facts, crashes) });
            }
          }
        }
      }
    }
  }
  return cases;
}

/** A host as recovery sees it: what its disk says, and how often workers were told since the swap. */
interface Model {
  readonly journal: Journal | undefined;
  readonly current: number;
  readonly crashes: number;
  readonly notified: number;
}

/** What a start does, one durable operation a step: a crash can come behind each of them. */
function stepsOf(model: Model): ((before: Model) => Model)[] {
  const facts = { current: model.current, isWhole: true, back: 1, isCommitted: false };
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
      return [count, turn, link, ...(plan.notify === 'yes' ? [notify] : []), clear];
  }
}

describe('any sequence of crashes', () => {
  /** Each start of the sequence ends behind so many of its operations. */
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

  it('tells workers so often, and then no more, however long it goes on', () => {
    fc.assert(
      fc.property(swaps, sequences, (begin, crashes) => {
        const crashed = crashes.reduce(run, begin);
        assert.ok(crashed.notified <= begin.notified + maxCrashes);
      }),
    );
  });

  it('never leads forward again once it led back', () => {
    fc.assert(
      fc.property(swaps, sequences, (begin, crashes) => {
        let model = begin;
        let wasBack = false;
        for (const steps of crashes) {
          const plan = planRecovery(
            model.journal,
            { current: model.current, isWhole: true, back: 1, isCommitted: false },
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
  it('has nothing to tell where nothing is active', () => {
    assert.equal(rebuildJournal(undefined, 3), undefined);
  });

  it('leads forward from the last known good generation to another one that is active', () => {
    const { from, to, direction } = rebuildJournal(4, 3)!;
    assert.deepEqual([from, to, direction], [3, 4, 'forward']);
  });

  it('of a first activation has no generation before it', () => {
    assert.equal(rebuildJournal(1, undefined)?.from, undefined);
  });

  it('tells everybody again where the link is at the last known good: who was told is lost', () => {
    const rebuilt = rebuildJournal(4, 4)!;
    const facts = { current: 4, isWhole: true, back: 4, isCommitted: false };
    assert.deepEqual(planRecovery(rebuilt, facts, 0), undo(4));
  });
});

// The transition table of the cycle, in each sequence of events: it always ends, nothing needs a restore before the swap, and each
// failure between swap and commit leads to a restore.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  type CycleEvent,
  type CycleState,
  exitCodeOfOutcome,
  firstStep,
  type Outcome,
  outcomes,
  type Step,
  steps,
  transition,
  worstOutcome,
} from '../../../../src/core/cycle/sync-machine.js';

const anyOutcome = fc.constantFrom(...outcomes);
const anyEvent: fc.Arbitrary<CycleEvent> = fc.oneof(
  { weight: 8, arbitrary: fc.constant<CycleEvent>({ type: 'done' }) },
  { weight: 1, arbitrary: anyOutcome.map((outcome): CycleEvent => ({ type: 'nothing', outcome })) },
  { weight: 1, arbitrary: anyOutcome.map((outcome): CycleEvent => ({ type: 'stopped', outcome })) },
  { weight: 1, arbitrary: fc.constant<CycleEvent>({ type: 'retried' }) },
);
const beforeSwap: readonly Step[] = steps.slice(0, steps.indexOf('swap'));
const behindSwap: readonly Step[] = ['swap', 'load', 'reset', 'probe'];

const initialState = at(firstStep);

/** Every state that the events lead through; an event that does not fit is left out, as its caller must. */
function walk(events: readonly CycleEvent[]): CycleState[] {
  const states: CycleState[] = [initialState];
  for (const event of events) {
    const next = transition(states.at(-1) ?? initialState, event);
    if (next !== undefined) states.push(next);
  }
  return states;
}

function at(step: Step): CycleState {
  return { name: 'running', step };
}

describe('the steps of a cycle', () => {
  it('run in the order of the design, and end activated', () => {
    const states = walk(steps.map(() => ({ type: 'done' })));
    const seen = states.map((state) => (state.name === 'running' ? state.step : state.name));
    assert.deepEqual(seen, [
      'refresh',
      'select',
      'fetch',
      'stage',
      'verify',
      'check',
      'canary',
      'flush',
      'swap',
      'load',
      'reset',
      'probe',
      'commit',
      'ended',
    ]);
    assert.deepEqual(states.at(-1), { name: 'ended', outcome: 'activated' });
  });

  it('never check a bundle before its signature, nor swap before its checks', () => {
    const order = (step: Step): number => steps.indexOf(step);
    assert.ok(order('refresh') < order('fetch') && order('verify') < order('check'));
    assert.ok(
      order('check') < order('canary') && order('canary') < order('flush') && order('flush') < order('swap'),
    );
  });
});

describe('each sequence of the table', () => {
  it('ends within one event a step and one to stop, or tries again', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (events) => {
        const tries = events.filter((event) => event.type === 'retried').length + 1;
        assert.ok(walk(events).length <= tries * (steps.length + 2));
      }),
    );
  });

  it('continues from every state except the end', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), anyEvent, (events, event) => {
        const last = walk(events).at(-1) ?? initialState;
        const onward = [{ type: 'done' }, { type: 'retried' }] as const;
        const open = onward.some((one) => transition(last, one) !== undefined);
        assert.equal(open, last.name !== 'ended');
        if (last.name === 'ended') assert.equal(transition(last, event), undefined);
      }),
    );
  });

  it('restores only from a step after the swap', () => {
    fc.assert(
      fc.property(fc.array(anyEvent, { maxLength: 60 }), (events) => {
        const states = walk(events);
        states.forEach((state, index) => {
          if (state.name !== 'restoring') return;
          const from = states[index - 1];
          assert.ok(from?.name === 'running' && behindSwap.includes(from.step));
          assert.equal(state.after, from.step);
        });
      }),
    );
  });
});

describe('a stop', () => {
  for (const step of beforeSwap) {
    it(`ends the cycle in ${step}, with nothing to undo`, () => {
      const state = transition(at(step), { type: 'stopped', outcome: 'rejected' });
      assert.deepEqual(state, { name: 'ended', outcome: 'rejected' });
    });
  }

  for (const step of behindSwap) {
    it(`restores after ${step}, whatever its outcome`, () => {
      for (const outcome of outcomes) {
        assert.deepEqual(transition(at(step), { type: 'stopped', outcome }), {
          name: 'restoring',
          after: step,
        });
      }
    });
  }

  it('does not restore after a commit', () => {
    const state = transition(at('commit'), { type: 'stopped', outcome: 'failed' });
    assert.deepEqual(state, { name: 'ended', outcome: 'failed' });
  });
});

describe('the transition table', () => {
  it('rejects `nothing` after the link has moved', () => {
    for (const step of [...behindSwap, 'commit'] as const) {
      assert.equal(transition(at(step), { type: 'nothing', outcome: 'unchanged' }), undefined, step);
    }
  });

  it('rejects a new selection from a step without a restore, except directly after the download', () => {
    for (const step of steps) {
      const after = transition(at(step), { type: 'retried' });
      assert.deepEqual(after, step === 'stage' ? at('select') : undefined, step);
    }
  });

  it('rejects a new start except from a swap that moved nothing', () => {
    for (const step of steps) {
      const after = transition(at(step), { type: 'outdated' });
      assert.deepEqual(after, step === 'swap' ? at('refresh') : undefined, step);
    }
  });

  it('accepts only a retry while restoring', () => {
    const restoring: CycleState = { name: 'restoring', after: 'load' };
    assert.equal(transition(restoring, { type: 'done' }), undefined);
    assert.equal(transition(restoring, { type: 'stopped', outcome: 'failed' }), undefined);
    assert.deepEqual(transition(restoring, { type: 'retried' }), at('select'));
  });
});

describe('worstOutcome', () => {
  const some = fc.array(anyOutcome, { maxLength: 6 });

  it('does not depend on the order of the bundles', () => {
    fc.assert(
      fc.property(some, some, (a, b) => assert.equal(worstOutcome([...a, ...b]), worstOutcome([...b, ...a]))),
    );
  });

  it('does not depend on the grouping of the bundles', () => {
    fc.assert(
      fc.property(some, some, (a, b) => {
        assert.equal(worstOutcome([worstOutcome(a), worstOutcome(b)]), worstOutcome([...a, ...b]));
      }),
    );
  });

  it('is one of the outcomes, and unchanged for an empty list', () => {
    assert.equal(worstOutcome([]), 'unchanged');
    fc.assert(
      fc.property(fc.array(anyOutcome, { minLength: 1 }), (all) =>
        assert.ok(all.includes(worstOutcome(all))),
      ),
    );
  });

  it('ranks a refusal above a success, as the exit code of several bundles requires', () => {
    const ranked: readonly [Outcome, Outcome][] = [
      ['activated', 'unchanged'],
      ['deferred', 'activated'],
      ['degraded', 'deferred'],
      ['failed', 'degraded'],
      ['rejected', 'failed'],
      ['rolled-back', 'rejected'],
      ['blocked', 'rolled-back'],
    ];
    for (const [worse, better] of ranked) assert.equal(worstOutcome([worse, better]), worse);
  });
});

describe('exit codes', () => {
  it('are zero for success only', () => {
    const zero = outcomes.filter((outcome) => exitCodeOfOutcome[outcome] === 0);
    assert.deepEqual(zero, ['unchanged', 'activated']);
  });

  it('distinguish all other outcomes', () => {
    const others = outcomes.map((outcome) => exitCodeOfOutcome[outcome]).filter((code) => code !== 0);
    assert.equal(new Set(others).size, others.length);
  });
});

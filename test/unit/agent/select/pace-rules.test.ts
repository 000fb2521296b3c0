import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { waitsUntilMs } from '../../../../src/agent/select/pace-rules.js';

const times = (nowMs: number, more: object = {}) => ({ sinceMs: 1000, changedAtMs: 1000, nowMs, ...more });

describe('a group with a quiet time', () => {
  const rule = { settleMs: 100 };

  it('waits for the quiet time after the last change, and not longer', () => {
    assert.equal(waitsUntilMs(rule, times(1000)), 1100);
    assert.equal(waitsUntilMs(rule, times(1099)), 1100);
    assert.equal(waitsUntilMs(rule, times(1100)), undefined);
    assert.equal(waitsUntilMs(rule, times(1100, { changedAtMs: 1090 })), 1190);
  });

  it('waits for four times its quiet time at most, also if changes never end', () => {
    assert.equal(waitsUntilMs(rule, times(1399, { changedAtMs: 1390 })), 1400);
    assert.equal(waitsUntilMs(rule, times(1400, { changedAtMs: 1399 })), undefined);
  });
});

describe('a group with a least time between two moves', () => {
  const rule = { minIntervalMs: 500 };

  it('waits until that time is over, and does not wait before its first move', () => {
    assert.equal(waitsUntilMs(rule, times(1000)), undefined);
    assert.equal(waitsUntilMs(rule, times(1000, { movedAtMs: 900 })), 1400);
    assert.equal(waitsUntilMs(rule, times(1400, { movedAtMs: 900 })), undefined);
  });

  it('waits for the later of both times if it has a quiet time too', () => {
    const both = { ...rule, settleMs: 100 };
    assert.equal(waitsUntilMs(both, times(1000, { movedAtMs: 900 })), 1400);
    assert.equal(waitsUntilMs(both, times(1000, { movedAtMs: 400 })), 1100);
  });
});

describe('a clock that was set back', () => {
  it('does not make a group wait for a time in the future', () => {
    assert.equal(waitsUntilMs({ settleMs: 100 }, times(10)), undefined);
    assert.equal(waitsUntilMs({ minIntervalMs: 100 }, times(2000, { movedAtMs: 9000 })), undefined);
  });
});

// Requests by the second: mean, peaks, and what counts as a herd.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { EventQueue } from '../../../../bench/simulate/event-queue.js';
import { isHerd, LoadCurve } from '../../../../bench/simulate/load-curve.js';

function curveOf(counts: readonly number[]): LoadCurve {
  const curve = new LoadCurve(counts.length);
  for (const [second, count] of counts.entries())
    for (let at = 0; at < count; at++) curve.note(second * 1000 + 999);
  return curve;
}

describe('a curve of requests', () => {
  it('has a mean, the fullest second and the fullest ten', () => {
    const load = curveOf([...Array<number>(20).fill(1), 11, ...Array<number>(19).fill(1)]).between(0, 40);
    assert.deepEqual(load, { requests: 50, perSecond: 1.25, peak: 11, windowPeak: 2 });
  });

  it('looks at the seconds it is asked for and no others', () => {
    const load = curveOf([100, 1, 1, 1, 100]).between(1, 4);
    assert.deepEqual([load.requests, load.peak], [3, 1]);
    assert.equal(curveOf([1]).between(1, 1).requests, 0);
  });

  it('is a herd above three times of what came before, and not for chance', () => {
    const steady = { requests: 0, perSecond: 100, peak: 0, windowPeak: 0 };
    assert.equal(isHerd({ ...steady, windowPeak: 300 }, steady), false);
    assert.equal(isHerd({ ...steady, windowPeak: 340 }, steady), true);
    const few = { ...steady, perSecond: 0.1 };
    assert.equal(isHerd({ ...few, windowPeak: 2 }, few), false);
    assert.equal(isHerd({ ...few, windowPeak: 3 }, few), true);
  });
});

describe('a queue of wakes', () => {
  it('gives them by their time, up to a time', () => {
    const queue = new EventQueue();
    const times = [5, 3, 9, 1, 7, 3, 8, 2];
    for (const [host, atMs] of times.entries()) queue.push({ atMs, host });
    const taken: number[] = [];
    for (let wake = queue.pop(8); wake !== undefined; wake = queue.pop(8)) taken.push(wake.atMs);
    assert.deepEqual(taken, [1, 2, 3, 3, 5, 7, 8]);
    assert.deepEqual(queue.pop(9), { atMs: 9, host: 2 });
    assert.equal(queue.pop(9), undefined);
  });
});

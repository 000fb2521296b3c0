import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createAnswerGrace } from '../../../../src/workers/contract/liveness.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const dead = async () => 'dead' as const;
const alive = async () => 'alive' as const;

function scene() {
  const clock = fakeClock({ mode: 'skip' });
  const grace = createAnswerGrace(clock, 3000);
  const tookMs = async (act: () => Promise<unknown>): Promise<number> => {
    const beforeMs = clock.monotonicMs();
    await act();
    return clock.monotonicMs() - beforeMs;
  };
  return { grace, tookMs };
}

describe('the grace period of an absent worker', () => {
  it('is used once: a worker that is known to be dead is checked without it, until it is back', async () => {
    const { grace, tookMs } = scene();
    assert.equal(await tookMs(() => grace.within('a', dead)), 3000);
    assert.equal(await tookMs(() => grace.within('a', dead)), 0);
    assert.equal(await tookMs(() => grace.within('b', dead)), 3000, 'another one has its own');
    assert.equal(await grace.within('a', alive), 'alive');
    assert.equal(await tookMs(() => grace.within('a', dead)), 3000);
  });

  it('starts again with a notification, for the timeout of its answer', async () => {
    const { grace, tookMs } = scene();
    await grace.within('a', dead);
    grace.notified('a', 10_000);
    assert.equal(await tookMs(() => grace.within('a', dead)), 10_000);
    assert.equal(await tookMs(() => grace.within('a', dead)), 0);
  });

  it('ends as soon as the worker is back', async () => {
    const { grace, tookMs } = scene();
    let checks = 0;
    const back = async () => (++checks === 3 ? ('alive' as const) : ('dead' as const));
    assert.equal(await tookMs(() => grace.within('a', back)), 100);
  });
});

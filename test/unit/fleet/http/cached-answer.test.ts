import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cacheAnswer } from '../../../../src/fleet/http/cached-answer.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const bounds = { forMs: 1000, waitMs: 3000 };

describe('a query of simultaneous requests', () => {
  it('runs once for all of them, and for a short time after it', async () => {
    const clock = fakeClock();
    let queries = 0;
    const ask = cacheAnswer(clock, bounds, async () => ++queries);
    assert.deepEqual(await Promise.all(Array.from({ length: 1000 }, ask)), Array(1000).fill(1));
    await clock.advance(999);
    assert.equal(await ask(), 1);
    await clock.advance(1);
    assert.equal(await ask(), 2);
    assert.equal(clock.sleeping(), 0, 'no timer runs after an answer');
  });

  it('fails for all of them, and runs again later', async () => {
    const clock = fakeClock();
    let queries = 0;
    const ask = cacheAnswer(clock, bounds, async () => {
      if (++queries === 1) throw new Error('away');
      return 'here';
    });
    await assert.rejects(ask(), /away/);
    await assert.rejects(ask(), /away/);
    await clock.advance(1000);
    assert.equal(await ask(), 'here');
    assert.equal(queries, 2);
  });

  it('is FLEET_STORE_UNREACHABLE for each caller where it hangs, and stays the only one', async () => {
    const clock = fakeClock();
    let queries = 0;
    let answer: (value: string) => void = () => undefined;
    const ask = cacheAnswer(clock, bounds, () => {
      queries++;
      return new Promise<string>((resolve) => {
        answer = resolve;
      });
    });
    for (let at = 0; at < 3; at++) {
      const waiting = rejectsCode('FLEET_STORE_UNREACHABLE', ask());
      await clock.advance(3000);
      await waiting;
    }
    assert.equal(queries, 1);
    const last = ask();
    answer('late');
    assert.equal(await last, 'late');
  });
});

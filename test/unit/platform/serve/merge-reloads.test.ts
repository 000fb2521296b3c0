import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { mergeReloads } from '../../../../src/platform/serve/merge-reloads.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

function scene() {
  const clock = fakeClock();
  const running: (() => void)[] = [];
  let begun = 0;
  const reloads = mergeReloads(() => {
    begun += 1;
    return new Promise((resolve) => running.push(resolve));
  }, clock);
  return {
    clock,
    reloads,
    begun: () => begun,
    finish: async () => {
      running.shift()?.();
      await setImmediate();
    },
  };
}

describe('a wish to reload', () => {
  it('is fulfilled at once', () => {
    const { reloads, begun } = scene();
    reloads.request();
    assert.equal(begun(), 1);
  });

  it('waits while one runs, and a thousand wait as one', async () => {
    const { reloads, begun, finish, clock } = scene();
    for (let wishes = 0; wishes < 1000; wishes += 1) reloads.request();
    assert.equal(begun(), 1);
    await finish();
    // Requests are answered in between.
    assert.equal(begun(), 1);
    await clock.advance(100);
    assert.equal(begun(), 2);
    await finish();
    await clock.advance(10_000);
    assert.equal(begun(), 2);
  });

  it('that comes while one runs is seen by the next one, for that one read before it', async () => {
    const { reloads, begun, finish, clock } = scene();
    reloads.request();
    reloads.request();
    await finish();
    await clock.advance(100);
    await finish();
    await clock.advance(100);
    assert.equal(begun(), 2);
    reloads.request();
    assert.equal(begun(), 3);
  });
});

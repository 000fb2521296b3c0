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

describe('a request to reload', () => {
  it('starts a reload at once', () => {
    const { reloads, begun } = scene();
    reloads.request();
    assert.equal(begun(), 1);
  });

  it('waits during a reload, and a thousand requests are merged to one', async () => {
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

  it('during a reload starts another one, because the running one read before the request', async () => {
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

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createPings, pingEveryMs, pongTimeoutMs } from '../../../../src/workers/protocols/native-pings.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

function scene() {
  const clock = fakeClock();
  const stop = new AbortController();
  const sent: number[] = [];
  const silences: string[] = [];
  const state = { isBusy: false };
  const pings = createPings({
    clock,
    signal: stop.signal,
    send: (id) => void sent.push(id),
    isBusy: () => state.isBusy,
    onSilence: (reason) => void silences.push(reason),
  });
  const minute = async (): Promise<void> => {
    await clock.advance(pingEveryMs - pongTimeoutMs);
    await clock.advance(pongTimeoutMs);
  };
  return { clock, stop, sent, silences, state, pings, minute };
}

describe('pings to a native worker', () => {
  it('are sent each minute as long as they are answered', async () => {
    const { clock, stop, sent, silences, pings } = scene();
    const running = pings.run();
    for (let id = 1; id <= 3; id++) {
      await clock.advance(pingEveryMs - pongTimeoutMs);
      assert.deepEqual(sent.at(-1), id);
      assert.equal(pings.answer(id), true);
      await clock.advance(pongTimeoutMs);
    }
    assert.deepEqual([sent, silences], [[1, 2, 3], []]);
    stop.abort();
    await running;
  });

  it('report a silence once, and begin again with its late answer', async () => {
    const { stop, sent, silences, pings, minute } = scene();
    const running = pings.run();
    for (let count = 0; count < 5; count++) await minute();
    assert.deepEqual([sent, silences.length], [[1], 1]);
    pings.answer(1);
    await minute();
    assert.deepEqual([sent, silences.length], [[1, 2], 2]);
    stop.abort();
    await running;
  });

  it('leave a worker alone that is asked for a policy', async () => {
    const { stop, sent, silences, state, pings, minute } = scene();
    state.isBusy = true;
    const running = pings.run();
    await minute();
    assert.deepEqual([sent, silences], [[], []]);
    stop.abort();
    await running;
  });

  it('know the answer to a ping that was never sent', () => {
    assert.equal(scene().pings.answer(1), false);
  });
});

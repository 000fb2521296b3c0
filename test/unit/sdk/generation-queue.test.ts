import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { createGenerationQueue, type GenerationQueue } from '../../../src/sdk/generation-queue.js';

interface Harness {
  readonly queue: GenerationQueue;
  /** Generations the handler began, in order. */
  readonly begun: number[];
  readonly verdicts: string[];
  /** Ends the handler that runs. */
  finish(error?: unknown): Promise<void>;
  offer(generation: number, sender?: object): void;
}

function harness(): Harness {
  const begun: number[] = [];
  const verdicts: string[] = [];
  const finishers: ((error?: unknown) => void)[] = [];
  const queue = createGenerationQueue(({ generation }) => {
    begun.push(generation);
    return new Promise((resolve, reject) => {
      finishers.push((error) => (error === undefined ? resolve() : reject(error)));
    });
  });
  const connection = {};
  let id = 0;
  return {
    queue,
    begun,
    verdicts,
    finish: async (error) => {
      finishers.shift()?.(error);
      await setImmediate();
    },
    offer: (generation, sender = connection) => {
      id += 1;
      queue.offer({
        sender,
        message: { type: 'generation', id, generation, path: `/g/${generation}` },
        reply: (verdict) =>
          verdicts.push(`${generation} ${verdict.type === 'ack' ? 'ack' : `nack ${verdict.reason}`}`),
      });
    },
  };
}

describe('generations through a handler', () => {
  it('go one at a time, and of those that wait only the newest', async () => {
    const { queue, begun, verdicts, finish, offer } = harness();
    for (const generation of [1, 2, 3]) offer(generation);
    assert.deepEqual(begun, [1]);
    await finish();
    assert.deepEqual(begun, [1, 3]);
    await finish();
    assert.deepEqual(verdicts, ['1 ack', '3 ack']);
    await queue.stop();
  });

  it('are refused with the reason that the handler throws, whatever it throws', async () => {
    const { verdicts, finish, offer } = harness();
    offer(1);
    await finish(new Error('user eve has no role'));
    offer(2);
    await finish('a text');
    assert.deepEqual(verdicts, ['1 nack user eve has no role', '2 nack a text']);
  });

  it('are not handled again when nothing came between', async () => {
    const { begun, verdicts, finish, offer } = harness();
    offer(1);
    await finish();
    offer(1);
    await setImmediate();
    assert.deepEqual(begun, [1]);
    assert.deepEqual(verdicts, ['1 ack', '1 ack']);
  });

  it('are handled again after a refusal, which may have destroyed what was there', async () => {
    const { begun, finish, offer } = harness();
    offer(1);
    await finish();
    offer(2);
    await finish(new Error('no'));
    offer(1);
    await finish();
    assert.deepEqual(begun, [1, 2, 1]);
  });

  it('are handled again when another connection tells the same number', async () => {
    const { begun, finish, offer } = harness();
    offer(1);
    await finish();
    offer(1, {});
    await finish();
    assert.deepEqual(begun, [1, 1]);
  });

  it('stop after the one that is under way', async () => {
    const { queue, begun, finish, offer } = harness();
    offer(1);
    offer(2);
    const stopped = queue.stop();
    await finish();
    await stopped;
    assert.deepEqual(begun, [1]);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Work } from '../../../../src/agent/job/exclusive.js';
import { createTurns } from '../../../../src/agent/job/turns.js';

/** Turns with a cycle that waits for the network until `answer` is called; `order` lists the jobs as they ran. */
function scene() {
  const works: Work[] = [];
  const order: string[] = [];
  const turns = createTurns((work) => void works.push(work));
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const cycle = turns.runCycle(async (yieldTurn) => {
    order.push('select');
    await yieldTurn(async () => {
      turns.reportEvent({ type: 'step.progress', cycle: 'c-1', step: 'fetch', doneBytes: 1, totalBytes: 2 });
      await answered;
    });
    order.push('swap');
  });
  const job = (name: string) => async (): Promise<void> => void order.push(name);
  return { works, order, turns, answer, cycle, job };
}

const progress = { kind: 'step', step: 'fetch', download: { doneBytes: 1, totalBytes: 2 } };
const passTicks = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('turns', () => {
  it('are given to short jobs while a cycle waits for the network, and back to the cycle after them', async () => {
    const { order, turns, answer, cycle, job } = scene();
    await passTicks();
    await turns.runShort(job('rollback'));
    let end = (): void => undefined;
    const long = turns.runShort(async () => {
      order.push('short job begins');
      await new Promise<void>((resolve) => {
        end = resolve;
      });
      order.push('look ends');
    });
    await passTicks();
    answer();
    await passTicks();
    assert.deepEqual(order, ['select', 'rollback', 'short job begins']);
    end();
    await Promise.all([long, cycle]);
    assert.deepEqual(order.slice(3), ['look ends', 'swap']);
  });

  it('are given to other cycles, and to jobs that run alone, when the cycle has ended', async () => {
    const { order, turns, answer, cycle, job } = scene();
    await passTicks();
    const all = [turns.runCycle(job('second cycle')), turns.exclusive(job('reload'))];
    await passTicks();
    assert.deepEqual(order, ['select']);
    answer();
    await Promise.all([...all, cycle]);
    assert.deepEqual(order, ['select', 'swap', 'second cycle', 'reload']);
  });

  it('are not given to a job that never runs beside a cycle, and that job is skipped', async () => {
    const { order, turns, answer, cycle, job } = scene();
    await turns.runUnlessCycle(job('collection'));
    answer();
    await cycle;
    await turns.runUnlessCycle(job('later collection'));
    assert.deepEqual(order, ['select', 'swap', 'later collection']);
  });

  it('show the download of the waiting cycle again after a short job', async () => {
    const { works, turns, answer, cycle, job } = scene();
    await passTicks();
    await turns.runShort(job('look'));
    assert.deepEqual(works, [{ kind: 'began' }, progress, { kind: 'began' }, progress]);
    answer();
    await cycle;
    assert.deepEqual(works.at(-1), { kind: 'ended' });
  });

  it('continue after a wait that failed, and the cycle has its turn again before its error arrives', async () => {
    const turns = createTurns(() => undefined);
    const order: string[] = [];
    const cycle = turns.runCycle(async (yieldTurn) => {
      await yieldTurn(() => Promise.reject(new Error('no network'))).catch(() => order.push('failed'));
      order.push('ended');
    });
    await turns.runShort(async () => void order.push('look'));
    await cycle;
    await turns.idle();
    assert.deepEqual(order, ['look', 'failed', 'ended']);
  });

  it('are idle when neither a cycle nor a short job is left', async () => {
    const { order, turns, answer, job } = scene();
    await passTicks();
    void turns.runShort(job('look'));
    const idle = turns.idle().then(() => order.push('idle'));
    answer();
    await idle;
    assert.deepEqual(order, ['select', 'look', 'swap', 'idle']);
  });
});

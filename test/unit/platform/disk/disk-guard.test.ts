import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { type FreeRoom, guardDisk } from '../../../../src/platform/disk/disk-guard.js';

/** Aborts when it does; `false` when it did not after as many looks as there are answers. */
async function trips(...answers: readonly (FreeRoom | 'silent')[]): Promise<boolean> {
  let looks = 0;
  let seenAll: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    seenAll = resolve;
  });
  const guard = guardDisk({
    path: '/x',
    everyMs: 1,
    readFree: (path) => {
      assert.equal(path, '/x');
      const answer = answers[Math.min(looks, answers.length - 1)] ?? assert.fail();
      looks += 1;
      if (looks > answers.length) seenAll();
      return answer === 'silent' ? undefined : answer;
    },
  });
  await Promise.race([all, once(guard.signal, 'abort')]);
  guard.stop();
  return guard.signal.aborted;
}

describe('the guard of a disk', () => {
  it('trips when half of the free bytes are gone, or half of the free inodes', async () => {
    assert.equal(await trips({ bytes: 100 }, { bytes: 60 }, { bytes: 49 }), true);
    assert.equal(await trips({ bytes: 100, inodes: 10 }, { bytes: 100, inodes: 4 }), true);
  });

  it('does not before', async () => {
    assert.equal(await trips({ bytes: 100, inodes: 10 }, { bytes: 51, inodes: 5 }), false);
    assert.equal(await trips({ bytes: 0 }, { bytes: 0 }), false);
    assert.equal(await trips({ bytes: 100 }, { bytes: 100, inodes: 1 }), false);
  });

  it('does not where the disk does not answer', async () => {
    assert.equal(await trips({ bytes: 100 }, 'silent', { bytes: 90 }), false);
    const guard = guardDisk({ path: '/nonexistent' });
    assert.equal(guard.signal.aborted, false);
    guard.stop();
  });

  it('reads a real disk', () => {
    const guard = guardDisk({ path: '/' });
    assert.equal(guard.signal.aborted, false);
    guard.stop();
  });
});

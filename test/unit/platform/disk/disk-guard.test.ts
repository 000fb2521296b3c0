import assert from 'node:assert/strict';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { guardDisk, type RemainingSpace } from '../../../../src/platform/disk/disk-guard.js';

/** @returns true if the guard aborted; false if it did not after it read each of the answers once */
async function trips(...answers: readonly (RemainingSpace | 'silent')[]): Promise<boolean> {
  let reads = 0;
  let seenAll: () => void = () => undefined;
  const all = new Promise<void>((resolve) => {
    seenAll = resolve;
  });
  const guard = guardDisk({
    path: '/x',
    everyMs: 1,
    readFree: (path) => {
      assert.equal(path, '/x');
      const answer = answers[Math.min(reads, answers.length - 1)] ?? assert.fail();
      reads += 1;
      if (reads > answers.length) seenAll();
      return answer === 'silent' ? undefined : answer;
    },
  });
  await Promise.race([all, once(guard.signal, 'abort')]);
  guard.stop();
  return guard.signal.aborted;
}

describe('guardDisk', () => {
  it('aborts when half of the free bytes or inodes are used', async () => {
    assert.equal(await trips({ bytes: 100 }, { bytes: 60 }, { bytes: 49 }), true);
    assert.equal(await trips({ bytes: 100, inodes: 10 }, { bytes: 100, inodes: 4 }), true);
  });

  it('does not abort before half of the space is used', async () => {
    assert.equal(await trips({ bytes: 100, inodes: 10 }, { bytes: 51, inodes: 5 }), false);
    assert.equal(await trips({ bytes: 0 }, { bytes: 0 }), false);
    assert.equal(await trips({ bytes: 100 }, { bytes: 100, inodes: 1 }), false);
  });

  it('does not abort when the file system does not answer', async () => {
    assert.equal(await trips({ bytes: 100 }, 'silent', { bytes: 90 }), false);
    const guard = guardDisk({ path: '/nonexistent' });
    assert.equal(guard.signal.aborted, false);
    guard.stop();
  });

  it('reads the free space of a real disk', () => {
    const guard = guardDisk({ path: '/' });
    assert.equal(guard.signal.aborted, false);
    guard.stop();
  });
});

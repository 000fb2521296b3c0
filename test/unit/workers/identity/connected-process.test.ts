import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { claimedProcess } from '../../../../src/workers/identity/connected-process.js';

describe('the process that a worker says it is', () => {
  it('is named by pid and start time while it lives, and by nothing once it has ended', async () => {
    assert.match(claimedProcess(process.pid) ?? '', new RegExp(`^${process.pid}@\\d+$`));
    const child = spawn('sleep', ['600'], { stdio: 'ignore' });
    const pid = child.pid ?? 0;
    assert.equal(claimedProcess(pid), claimedProcess(pid));
    assert.match(claimedProcess(pid) ?? '', new RegExp(`^${pid}@\\d+$`));
    const ended = once(child, 'close');
    child.kill('SIGKILL');
    await ended;
    assert.equal(claimedProcess(pid), undefined);
  });

  it('is not known where the pid can only be that of another namespace', () => {
    assert.deepEqual([1, 2 ** 31, Number.MAX_SAFE_INTEGER].map(claimedProcess), [
      undefined,
      undefined,
      undefined,
    ]);
  });
});

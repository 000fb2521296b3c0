import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { readCommand } from '../../../../src/platform/process/proc-files.js';
import { childrenOf } from '../../../../src/platform/process/processes.js';
import { claimedProcess } from '../../../../src/workers/identity/connected-process.js';
import { until } from '../../../kit/assert/until.js';
import { needs } from '../../../kit/programs/real-programs.js';

const needsNamespaces = {
  ...needs('unshare', 'util-linux'),
  ...(process.getuid?.() === 0 ? {} : { skip: 'only root can make a namespace of processes everywhere' }),
};
const needsKernelThread =
  readCommand('/proc', 2) === 'kthreadd' ? {} : { skip: 'a container shows no thread of the kernel' };

describe('the process that a worker names', () => {
  it('is identified by pid and start time while it runs, and not at all after its end', async () => {
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

  it('is not known where the pid is that of a process of an inner namespace', needsNamespaces, async () => {
    const inner = spawn('unshare', ['--pid', '--fork', '--kill-child', 'sleep', '600'], { stdio: 'ignore' });
    const pid = inner.pid ?? 0;
    await until(() => childrenOf(pid).some((child) => readCommand('/proc', child.pid) === 'sleep'));
    const [sleeping] = childrenOf(pid);
    assert.ok(sleeping);
    assert.equal(claimedProcess(sleeping.pid), undefined);
    assert.match(claimedProcess(pid) ?? '', new RegExp(`^${pid}@`));
    const ended = once(inner, 'close');
    inner.kill('SIGKILL');
    await ended;
  });

  it('is not known where the pid is that of a thread of the kernel', needsKernelThread, () => {
    assert.equal(claimedProcess(2), undefined);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ownThreadId, threadCpuMs } from '../../../../src/platform/process/thread-time.js';

describe('the processor time of a thread', () => {
  it('grows while it works', () => {
    const thread = ownThreadId() ?? 0;
    const before = threadCpuMs(thread) ?? Number.NaN;
    const endMs = process.cpuUsage().user / 1000 + 200;
    while (process.cpuUsage().user / 1000 < endMs) Math.sqrt(endMs);
    const grown = (threadCpuMs(thread) ?? Number.NaN) - before;
    assert.ok(grown >= 50, `${grown} ms`);
  });

  it('is unknown of a thread that is not there', () => {
    assert.equal(threadCpuMs(2 ** 30), undefined);
  });
});

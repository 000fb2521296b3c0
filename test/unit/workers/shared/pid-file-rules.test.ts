import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isTrustedOwner, mayHaveWritten } from '../../../../src/workers/shared/pid-file-rules.js';

const bootMs = 1_800_000_000_000;
const hourMs = 3_600_000;
const uptimeMs = 5 * hourMs;
/** A process that began an hour after the boot. */
const startTicks = (hourMs / 1000) * 100;

function mayWrite(writtenAtMs: number, bootAtMs: readonly number[] = [bootMs]): boolean {
  return mayHaveWritten({ startTicks, writtenAtMs, bootAtMs, uptimeMs });
}

describe('a process and its pid file', () => {
  it('belong together when the file was written after the start, or up to 2 s before', () => {
    assert.equal(mayWrite(bootMs + hourMs + 50), true);
    assert.equal(mayWrite(bootMs + 3 * hourMs), true);
    assert.equal(mayWrite(bootMs + hourMs - 2000), true);
    assert.equal(mayWrite(bootMs + hourMs - 2001), false);
  });

  it('do not belong together when the file is older than the boot: the number was used again', () => {
    assert.equal(mayWrite(bootMs - 7 * 24 * hourMs), false);
  });

  it('belong together when the clock was set after the file was written', () => {
    const clockOfBootMs = bootMs - 30 * 24 * hourMs;
    const writtenAtMs = clockOfBootMs + hourMs + 50;
    assert.equal(mayWrite(writtenAtMs), false);
    assert.equal(mayWrite(writtenAtMs, [bootMs, clockOfBootMs]), true);
  });

  it('do not belong together under any clock when the file is older by each of them', () => {
    const clockOfBootMs = bootMs - 30 * 24 * hourMs;
    assert.equal(mayWrite(clockOfBootMs + hourMs - 5000, [bootMs, clockOfBootMs]), false);
    assert.equal(mayWrite(bootMs + hourMs - 5000, [bootMs, clockOfBootMs]), false);
  });
});

describe('the owner of a pid file', () => {
  const [own, worker, other] = [1000, 1001, 1002];
  it('is trusted when it is root, this user, or the user of the process', () => {
    for (const owner of [0, own, worker]) assert.equal(isTrustedOwner(owner, worker, own), true);
  });

  it('is not trusted for a process of another user', () => {
    assert.equal(isTrustedOwner(worker, other, own), false);
    assert.equal(isTrustedOwner(worker, 0, 0), false);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type PolicyWaitOptions, waitForPolicy } from '../../../../src/cli/host/wait-for-policy.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { policyStands } from '../../../../src/core/cycle/policy-stands.js';
import { isWritError, WritError } from '../../../../src/core/errors.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';
import { cycleResult, problem } from '../../../kit/cli/cycle-results.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const { generation: _, ...nothing } = cycleResult('failed', {
  problems: [problem('SERVER_UNREACHABLE', 'connection refused')],
});

type Scripted = CycleResult | WritError | 'interrupted';

/** Pulls that end as scripted; the last result repeats. */
function stage(script: readonly Scripted[], report = statusReport(), more: Partial<PolicyWaitOptions> = {}) {
  const clock = fakeClock({ mode: 'skip' });
  const stop = new AbortController();
  const notes: string[] = [];
  let tries = 0;
  const reporter = {
    note: (text: string) => void notes.push(text),
    begin: () => undefined,
    progress: () => undefined,
    finish: () => undefined,
    drop: () => undefined,
    warn: () => undefined,
  };
  const wait = (waitMs: number) =>
    waitForPolicy({
      waitMs,
      context: { clock, reporter, signal: stop.signal },
      random01: () => 0.999,
      pull: () => {
        const next = script[Math.min(tries, script.length - 1)] ?? nothing;
        tries += 1;
        return isWritError(next) ? Promise.reject(next) : Promise.resolve(next);
      },
      readStatus: () => Promise.resolve(report),
      ...more,
    });
  return { clock, stop, notes, wait, tries: () => tries };
}

describe('waiting for a policy', () => {
  it('ends with the first pull that activates a policy, and has the answer of that pull', async () => {
    const { wait, tries } = stage([nothing, nothing, cycleResult('activated')]);
    const answer = await wait(300_000);
    assert.deepEqual([answer.outcome, answer.exitCode, tries()], ['activated', 0, 3]);
    assert.equal(answer.details['tries'], 3);
  });

  it('waits with a backoff from 5 s to a minute, and reports each delay', async () => {
    const { wait, clock, notes } = stage([nothing]);
    await wait(300_000);
    assert.deepEqual(
      clock.sleeps.slice(0, 6).map((one) => Math.round(one / 1000)),
      [5, 10, 20, 40, 60, 60],
    );
    assert.equal(
      clock.sleeps.reduce((one, other) => one + other),
      300_000,
    );
    assert.equal(notes.length, clock.sleeps.length);
    assert.match(notes[0] ?? '', /failed \[SERVER_UNREACHABLE\]; next try in 4 s|next try in 5 s/);
  });

  it('does not retry before the time that the server requests', async () => {
    const busy = { ...problem('SERVER_BUSY', 'busy'), facts: { retryAfterMs: 120_000 } };
    const { wait, clock } = stage([{ ...nothing, problems: [busy] }]);
    await wait(600_000);
    assert.deepEqual(clock.sleeps, [120_000, 120_000, 120_000, 120_000, 120_000]);
  });

  it('retries after five minutes if the server requests a longer delay', async () => {
    const busy = { ...problem('SERVER_BUSY', 'busy'), facts: { retryAfterMs: 3_600_000 } };
    const { wait, clock } = stage([{ ...nothing, problems: [busy] }, cycleResult('activated')]);
    assert.equal((await wait(3_600_000)).outcome, 'activated');
    assert.deepEqual(clock.sleeps, [300_000]);
  });

  it('ends at the timeout with the outcome of the last attempt', async () => {
    const { generation: _none, ...refused } = cycleResult('rejected');
    const { wait, tries } = stage([nothing, refused]);
    const answer = await wait(1000);
    assert.deepEqual([answer.outcome, answer.exitCode, tries()], ['rejected', 3, 2]);
    assert.match(answer.lines.at(-1) ?? '', /No verified policy became active within 1 s, in 2 pulls/);
  });

  it('fails when a pull had nothing to do and nothing is active', async () => {
    const { generation: _none, ...unchanged } = cycleResult('unchanged');
    const answer = await stage([unchanged]).wait(1000);
    assert.equal(answer.exitCode, 1);
  });

  it('ends when an older policy is verified and active, and reports the outcome of the pull', async () => {
    const { wait, tries } = stage([cycleResult('failed', { problems: nothing.problems })]);
    const answer = await wait(300_000);
    assert.deepEqual([answer.outcome, answer.exitCode, tries()], ['active', 0, 1]);
    assert.deepEqual(answer.details['pull'], { outcome: 'failed', exitCode: 1 });
    assert.match(answer.lines[0] ?? '', /^ACTIVE {2}generation 18 .* failed \[SERVER_UNREACHABLE\]$/);
  });

  it('keeps the answer of the pull for --settled, also if an older policy is active', async () => {
    for (const [outcome, code] of [
      ['degraded', 4],
      ['rejected', 3],
      ['deferred', 8],
    ] as const) {
      const { wait, tries } = stage([cycleResult(outcome)], statusReport(), { keepsExitCode: true });
      const answer = await wait(300_000);
      assert.deepEqual([answer.outcome, answer.exitCode, tries()], [outcome, code, 1]);
      assert.equal((await stage([cycleResult(outcome)]).wait(300_000)).exitCode, 0);
    }
  });

  it('continues while the active policy does not verify', async () => {
    const report = statusReport({ problems: [problem('STATE_DAMAGED', 'block.rpz changed')] });
    const { wait, tries } = stage([cycleResult('degraded')], report);
    const answer = await wait(20_000);
    assert.deepEqual([answer.outcome, answer.exitCode], ['degraded', 4]);
    assert.ok(tries() > 2);
  });

  it('retries after a temporary error, and ends with it', async () => {
    const held = new WritError('LOCK_HELD', 'held by pull');
    const { wait, tries } = stage([held]);
    await rejectsCode('LOCK_HELD', wait(1000));
    assert.equal(tries(), 2);
  });

  for (const error of [
    new WritError('CONFIG_INVALID', 'bundles is missing'),
    policyStands(Object.assign(new Error('EACCES'), { code: 'EACCES' }), 'none'),
    new WritError('AGENT_UNREACHABLE', 'its socket is closed to us', { facts: { reason: 'denied' } }),
  ]) {
    it(`ends at once with ${error.code}, which a wait does not fix`, async () => {
      const { wait, tries } = stage([error]);
      await rejectsCode(error.code, wait(300_000));
      assert.equal(tries(), 1);
    });
  }

  it('ends at once with a result that an operator has to fix', async () => {
    const { wait, tries } = stage([{ ...nothing, exitCode: 2 }]);
    assert.deepEqual([(await wait(300_000)).exitCode, tries()], [2, 1]);
  });

  it('ends when it is interrupted, in a pull or between two', async () => {
    const inPull = await stage(['interrupted']).wait(1000);
    assert.deepEqual([inPull.outcome, inPull.exitCode], ['interrupted', 130]);
    const { wait, stop } = stage([nothing]);
    stop.abort();
    assert.equal((await wait(300_000)).exitCode, 130);
  });
});

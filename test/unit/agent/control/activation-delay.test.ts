import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pullAfterDelay } from '../../../../src/agent/control/activation-delay.js';
import type { PullRequest } from '../../../../src/agent/cycle/cycle-runner.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { cycleResult, problem } from '../../../kit/cli/cycle-results.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';

const paced = (untilMs: number): CycleResult =>
  cycleResult('deferred', { problems: [{ ...problem('ACTIVATION_PACED', 'waits'), facts: { untilMs } }] });

interface Asked {
  readonly result: CycleResult;
  readonly pulls: number;
}

async function ask(
  clock: FakeClock,
  results: readonly CycleResult[],
  trigger: PullRequest['trigger'] = 'pull',
  stop = new AbortController(),
): Promise<Asked> {
  let pulls = 0;
  const pull = async (): Promise<CycleResult> => {
    pulls += 1;
    return results[pulls - 1] ?? cycleResult('failed');
  };
  const result = await pullAfterDelay({ pull }, { trigger }, { clock, stop: stop.signal });
  return { result, pulls };
}

describe('pullAfterDelay', () => {
  it('waits for an activation delay, and returns the result of its last cycle', async () => {
    const clock = fakeClock({ mode: 'skip' });
    const begunMs = clock.nowMs();
    const later = [paced(begunMs + 20_000), paced(begunMs + 50_000), cycleResult('activated')];
    const { result, pulls } = await ask(clock, later);
    assert.deepEqual([result.outcome, pulls, clock.nowMs() - begunMs], ['activated', 3, 50_000]);
  });

  it('returns at once if all delays together exceed a minute', async () => {
    const clock = fakeClock({ mode: 'skip' });
    const begunMs = clock.nowMs();
    assert.equal((await ask(clock, [paced(begunMs + 60_001)])).result.outcome, 'deferred');
    assert.equal(clock.nowMs(), begunMs);
    const twice = [paced(begunMs + 40_000), paced(begunMs + 70_000)];
    assert.deepEqual((await ask(clock, twice)).pulls, 2);
  });

  it('does not wait for a pause or a held release', async () => {
    const clock = fakeClock({ mode: 'skip' });
    const problems = [...paced(clock.nowMs() + 1000).problems, problem('ACTIVATION_PAUSED', 'freeze')];
    assert.equal((await ask(clock, [cycleResult('deferred', { problems })])).pulls, 1);
    assert.equal((await ask(clock, [cycleResult('deferred')])).pulls, 1);
  });

  it('does not wait in a poll, because no caller needs its result', async () => {
    const clock = fakeClock({ mode: 'skip' });
    assert.equal((await ask(clock, [paced(clock.nowMs() + 1000)], 'poll')).pulls, 1);
  });

  it('stops waiting when the agent ends', async () => {
    const clock = fakeClock();
    const stop = new AbortController();
    const asked = ask(clock, [paced(clock.nowMs() + 1000)], 'pull', stop);
    await clock.advance(0);
    stop.abort();
    assert.deepEqual([(await asked).result.outcome, (await asked).pulls], ['deferred', 1]);
  });
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { HookReport } from '../../../../src/agent/hooks/hook.js';
import { type ProbeQuestion, runProbeQuestions } from '../../../../src/agent/hooks/probe-attempts.js';
import type { ProbeConfig } from '../../../../src/core/config/config.js';
import type { HookVerdictKind } from '../../../../src/core/cycle/hook-verdict.js';
import { type FakeClock, fakeClock } from '../../../kit/clock/fake-clock.js';

/** The answer of a probe at a time, in milliseconds since its first attempt. */
type AnswerAt = (ms: number, attempt: number) => HookVerdictKind | 'not-run';

interface Played {
  readonly kind: HookVerdictKind;
  readonly reason: string;
  readonly attempts: number;
  /** From the first attempt to the verdict. */
  readonly tookMs: number;
}

interface Scene extends Partial<ProbeConfig> {
  readonly clock?: FakeClock;
  readonly takesMs?: number;
  readonly signal?: AbortSignal;
  readonly isGone?: () => Promise<boolean>;
}

function question(answer: AnswerAt, scene: Scene, played: Played[]): ProbeQuestion {
  const { clock = fakeClock({ mode: 'skip' }), takesMs = 0, isGone, signal: _, ...config } = scene;
  const probe: ProbeConfig = { run: ['ask'], timeoutMs: 10_000, ...config };
  const beganMs = clock.monotonicMs();
  let attempts = 0;
  return {
    probe,
    ask: async (timeoutMs) => {
      const atMs = clock.monotonicMs() - beganMs;
      attempts += 1;
      await clock.sleep(Math.min(takesMs, timeoutMs));
      if (timeoutMs < takesMs) return report('broken', 'timed out');
      const kind = answer(atMs, attempts);
      return kind === 'not-run' ? { ...report('broken', 'not started'), isNotRun: true } : report(kind);
    },
    ...(isGone === undefined ? {} : { isGone }),
    onDecided: ({ verdict }) => played.push({ ...verdict, attempts, tookMs: clock.monotonicMs() - beganMs }),
  };
}

function report(kind: HookVerdictKind, reason: string = kind): HookReport {
  return { verdict: { kind, reason }, text: '', durationMs: 0 };
}

async function play(answer: AnswerAt, scene: Scene = {}): Promise<Played> {
  const clock = scene.clock ?? fakeClock({ mode: 'skip' });
  const played: Played[] = [];
  await runProbeQuestions([question(answer, { ...scene, clock }, played)], { clock, signal: scene.signal });
  const [only] = played;
  assert.ok(only !== undefined && played.length === 1);
  return only;
}

describe('the attempts of a probe', () => {
  it('end at once with a right answer', async () => {
    const { kind, attempts, tookMs } = await play(() => 'ok');
    assert.deepEqual([kind, attempts, tookMs], ['ok', 1, 0]);
  });

  it('wait by default for a daemon that loads for 20 s and returns the old answer until then', async () => {
    const { kind, attempts, tookMs } = await play((ms) => (ms < 20_000 ? 'refused' : 'ok'));
    assert.deepEqual([kind, attempts, tookMs], ['ok', 21, 20_000]);
  });

  it('refuse at the deadline of 60 s after only wrong answers', async () => {
    const { kind, attempts, tookMs } = await play(() => 'refused');
    assert.deepEqual([kind, attempts, tookMs], ['refused', 60, 59_000]);
  });

  for (const silence of ['deferred', 'unreachable', 'broken'] as const) {
    it(`refuse a wrong answer after silence, also with retry: 0 (${silence})`, async () => {
      const { kind, tookMs } = await play((ms) => (ms < 4000 ? silence : 'refused'), { retry: 0 });
      assert.deepEqual([kind, tookMs], ['refused', 4000]);
    });

    it(`accept with retry: 0 a right answer after silence (${silence})`, async () => {
      const { kind, tookMs } = await play((ms) => (ms < 4000 ? silence : 'ok'), { retry: 0 });
      assert.deepEqual([kind, tookMs], ['ok', 4000]);
    });

    it(`have no verdict after silence until the deadline, with any retry (${silence})`, async () => {
      const { kind, tookMs } = await play(() => silence, { retry: 3 });
      assert.deepEqual([kind, tookMs], [silence, 59_000]);
    });
  }

  it('refuse after `retry` further wrong answers', async () => {
    const { kind, attempts, tookMs } = await play(() => 'refused', { retry: 3 });
    assert.deepEqual([kind, attempts, tookMs], ['refused', 4, 3000]);
  });

  it('do not count silence between wrong answers as a wrong answer', async () => {
    const answers = ['refused', 'deferred', 'deferred', 'refused', 'ok'] as const;
    const { kind, attempts } = await play((_, attempt) => answers[attempt - 1] ?? 'ok', { retry: 2 });
    assert.deepEqual([kind, attempts], ['ok', 5]);
  });

  it('refuse if only the last attempt before the deadline is silent', async () => {
    const { kind } = await play((ms) => (ms < 59_000 ? 'refused' : 'deferred'));
    assert.equal(kind, 'refused');
  });

  it('have no verdict if silence until the deadline follows a wrong answer', async () => {
    const { kind } = await play((ms) => (ms < 2000 ? 'refused' : 'deferred'));
    assert.equal(kind, 'deferred');
  });

  it('ignore an attempt that the deadline shortened', async () => {
    const scene = { deadlineMs: 10_000, takesMs: 4000 };
    const { kind, attempts, tookMs } = await play(() => 'refused', scene);
    assert.deepEqual([kind, attempts, tookMs], ['refused', 2, 9000]);
    const cut = await play(() => 'deferred', { deadlineMs: 10_000, takesMs: 4900, gapMs: 100 });
    assert.deepEqual([cut.kind, cut.attempts], ['deferred', 2]);
    const late = await play(() => 'deferred', { deadlineMs: 11_000, takesMs: 4000 });
    assert.deepEqual([late.kind, late.attempts], ['deferred', 3]);
  });

  it('use the gap and the deadline of the configuration', async () => {
    const { attempts, tookMs } = await play(() => 'refused', { gapMs: 500, deadlineMs: 5000 });
    assert.deepEqual([attempts, tookMs], [10, 4500]);
  });

  it('are not repeated for a command that cannot start, except with retry', async () => {
    assert.equal((await play(() => 'not-run')).attempts, 1);
    assert.equal((await play(() => 'not-run', { retry: 2 })).attempts, 3);
  });

  it('end with a warning, which confirms nothing', async () => {
    assert.deepEqual(await play(() => 'warned').then((one) => [one.kind, one.attempts]), ['warned', 1]);
  });

  it('do not refuse when a stop request ends them before the deadline', async () => {
    const ending = new AbortController();
    const answer = (): HookVerdictKind => {
      ending.abort();
      return 'refused';
    };
    const { kind, reason } = await play(answer, { signal: ending.signal });
    assert.deepEqual([kind, reason], ['broken', 'interrupted']);
  });

  it('end when the workers have ended', async () => {
    let checks = 0;
    const isGone = async (): Promise<boolean> => ++checks >= 3;
    const { kind, attempts } = await play(() => 'deferred', { isGone });
    assert.deepEqual([kind, attempts], ['unreachable', 3]);
  });
});

describe('runProbeQuestions with several probes', () => {
  it('waits for their deadlines at the same time', async () => {
    const clock = fakeClock({ mode: 'skip' });
    const played: Played[] = [];
    const all = [1, 2, 3].map(() => question(() => 'deferred', { clock }, played));
    await runProbeQuestions(all, { clock });
    assert.deepEqual(
      played.map(({ kind }) => kind),
      ['deferred', 'deferred', 'deferred'],
    );
    assert.ok(clock.monotonicMs() < 61_000 + 3000, `${clock.monotonicMs()} ms`);
  });

  it('ends at the first refusal while another probe is silent', async () => {
    const clock = fakeClock({ mode: 'skip' });
    const played: Played[] = [];
    const silent = question(() => 'deferred', { clock }, played);
    const refusing = question(() => 'refused', { clock, retry: 2 }, played);
    const onDecided = (): never => assert.fail('refused');
    await assert.rejects(runProbeQuestions([silent, { ...refusing, onDecided }], { clock }), /refused/);
    assert.deepEqual(played, []);
  });

  it('repeats each probe after a slow one used up the time', async () => {
    const clock = fakeClock({ mode: 'skip' });
    const played: Played[] = [];
    const slow = question(
      () => 'deferred',
      { clock, takesMs: 9000, deadlineMs: 5000, timeoutMs: 10_000 },
      [],
    );
    const other = question(
      (_, attempt) => (attempt < 2 ? 'refused' : 'ok'),
      { clock, deadlineMs: 5000 },
      played,
    );
    await runProbeQuestions([other, slow], { clock });
    assert.deepEqual(
      played.map(({ kind }) => kind),
      ['ok'],
    );
  });
});

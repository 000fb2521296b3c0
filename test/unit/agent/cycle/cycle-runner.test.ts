import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  createCycleRunner,
  type PullRequest,
  type RunOptions,
} from '../../../../src/agent/cycle/cycle-runner.js';
import type { CycleEventLine, CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { rejectsCode } from '../../../kit/assert/assert-code.js';

/** A runner with cycles that end when the test ends them. */
function stage() {
  const started: { options: RunOptions; end: () => void }[] = [];
  const runner = createCycleRunner(
    (options) =>
      new Promise<CycleResult>((resolve) => {
        const cycle = `c-${started.length + 1}`;
        started.push({ options, end: () => resolve({ cycle } as CycleResult) });
      }),
  );
  const pull = (trigger: PullRequest['trigger'], by?: string) =>
    runner.pull({ trigger, ...(by ? { by } : {}) }).then((result) => result.cycle);
  return { started, runner, pull };
}

const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a cycle runner', () => {
  it('answers a pull during a cycle with the next one, which all later pulls join', async () => {
    const { started, pull } = stage();
    const first = pull('poll');
    await settle();
    const second = pull('pull', 'anna');
    const third = pull('pull', 'ben');
    await settle();
    assert.equal(started.length, 1);
    started[0]!.end();
    assert.equal(await first, 'c-1');
    await settle();
    assert.equal(started.length, 2);
    assert.equal(started[1]!.options.by, 'anna');
    started[1]!.end();
    assert.deepEqual(await Promise.all([second, third]), ['c-2', 'c-2']);
  });

  it('starts a third cycle for a pull during the follow-up', async () => {
    const { started, pull } = stage();
    const all = [pull('poll')];
    await settle();
    all.push(pull('pull'));
    started[0]!.end();
    await settle();
    all.push(pull('pull'));
    started[1]!.end();
    await settle();
    started[2]!.end();
    assert.deepEqual(await Promise.all(all), ['c-1', 'c-2', 'c-3']);
  });

  it('lets a forced pull join only a forced cycle, which other pulls join too', async () => {
    const { started, pull } = stage();
    const running = pull('pull');
    await settle();
    const waiting = pull('poll');
    const forced = pull('force');
    started[0]!.end();
    await running;
    await settle();
    assert.equal(started[1]!.options.trigger, 'force');
    started[1]!.end();
    assert.deepEqual(await Promise.all([waiting, forced]), ['c-2', 'c-2']);
  });

  it('never runs two jobs at once, and continues after a failed job', async () => {
    const { started, runner, pull } = stage();
    const failing = runner.exclusive(async () => {
      throw new Error('broken job');
    });
    const cycle = pull('poll');
    await assert.rejects(failing, /broken job/);
    await settle();
    const order: string[] = [];
    const job = runner.exclusive(async () => order.push('job'));
    await settle();
    assert.deepEqual(order, []);
    started[0]!.end();
    await Promise.all([cycle, job]);
    assert.deepEqual(order, ['job']);
    await runner.idle();
  });

  it('reports the steps of the cycle to each waiting client', async () => {
    const { started, runner } = stage();
    const received: string[] = [];
    const both = ['a', 'b'].map((name) =>
      runner.pull({ trigger: 'pull', onEvent: (one) => received.push(`${name} ${one.type}`) }),
    );
    await settle();
    started[0]!.options.onEvent({ type: 'step.started', cycle: 'c-1', step: 'refresh' });
    started[0]!.end();
    await Promise.all(both);
    assert.deepEqual(received, ['a step.started', 'b step.started']);
  });

  it('reports when a job begins, reaches a step, and ends, also when it fails', async () => {
    const notified: unknown[] = [];
    const runner = createCycleRunner(
      async ({ onEvent }) => {
        onEvent({ type: 'cycle.started', cycle: 'c-1', trigger: 'poll', atMs: 0 });
        onEvent({ type: 'step.started', cycle: 'c-1', step: 'refresh' });
        return { cycle: 'c-1' } as CycleResult;
      },
      (work) => notified.push(work.kind === 'step' ? work.step : work.kind),
    );
    await runner.pull({ trigger: 'poll' });
    await assert.rejects(
      runner.exclusive(() => Promise.reject(new Error('no'))),
      /no/,
    );
    // A repair fetches too, so it continues as long as it reports steps.
    await runner.exclusive(async (reportEvent) =>
      reportEvent({ type: 'step.started', cycle: 'c-2', step: 'fetch' }),
    );
    const last = ['began', 'fetch', 'ended'];
    assert.deepEqual(notified, ['began', 'refresh', 'ended', 'began', 'ended', ...last]);
  });
});

describe('a pull with a client that disconnects before its cycle', () => {
  const gone = AbortSignal.abort();

  it('starts no cycle, and is answered INTERRUPTED', async () => {
    const { started, runner, pull } = stage();
    const first = pull('poll');
    await settle();
    const left = rejectsCode('INTERRUPTED', runner.pull({ trigger: 'force', by: 'anna', gone }));
    started[0]!.end();
    await Promise.all([first, left]);
    await runner.idle();
    assert.equal(started.length, 1);
  });

  it('leaves its cycle to the pulls that joined, without its force and its name', async () => {
    const { started, runner, pull } = stage();
    const first = pull('poll');
    await settle();
    const received: string[] = [];
    const onEvent = (): void => void received.push('anna');
    const left = runner.pull({ trigger: 'force', by: 'anna', onEvent, gone });
    const joined = pull('pull', 'ben');
    started[0]!.end();
    await first;
    await settle();
    const { trigger, by, onEvent: report } = started[1]!.options;
    assert.deepEqual([trigger, by], ['pull', 'ben']);
    report({ type: 'cycle.started', cycle: 'c-2', trigger: 'pull', atMs: 0 });
    assert.deepEqual(received, []);
    started[1]!.end();
    assert.equal(await joined, 'c-2');
    await left;
  });
});

/** A runner with cycles that end at an interrupt, or when the test ends them. */
function interruptible() {
  const started: { options: RunOptions; end: () => void }[] = [];
  const runner = createCycleRunner(
    (options) =>
      new Promise<CycleResult | undefined>((resolve) => {
        const cycle = `c-${started.length + 1}`;
        options.interrupt?.addEventListener('abort', () => resolve(undefined));
        options.onEvent({ type: 'cycle.started', cycle, trigger: options.trigger, atMs: 0 });
        started.push({ options, end: () => resolve({ cycle } as CycleResult) });
      }),
  );
  const pull = (trigger: PullRequest['trigger'], more: Partial<PullRequest> = {}) =>
    runner.pull({ trigger, ...more }).then((result) => result.cycle);
  return { started, runner, pull };
}

describe('a job that preempts cycles', () => {
  it('runs before the cycle that it ended, and before waiting cycles', async () => {
    const { started, runner, pull } = interruptible();
    const first = pull('poll');
    await settle();
    const second = pull('pull');
    const order: string[] = [];
    const job = runner.preempt(async () => order.push(`job after ${started.length}`));
    await settle();
    await settle();
    assert.deepEqual([order, started.length], [['job after 1'], 2]);
    assert.equal(started[1]!.options.trigger, 'pull');
    started[1]!.end();
    await job;
    assert.deepEqual(await Promise.all([first, second]), ['c-2', 'c-2']);
  });

  it('waits for a download that the server did not resume, unless it always ends it', async () => {
    const { started, runner, pull } = interruptible();
    const first = pull('poll');
    await settle();
    started[0]!.options.onSentAgain?.();
    const order: string[] = [];
    const patient = runner.preempt(async () => order.push('patient'));
    await settle();
    assert.equal(order.length, 0);
    const urgent = runner.preemptAlways(async () => order.push('urgent'));
    await settle();
    await settle();
    assert.deepEqual([order, started.length], [['patient', 'urgent'], 2]);
    started[1]!.end();
    await Promise.all([patient, urgent]);
    assert.equal(await first, 'c-2');
  });

  it('is followed by a cycle for each request, also when the job fails', async () => {
    const { started, runner, pull } = interruptible();
    const first = pull('poll');
    await settle();
    await assert.rejects(
      runner.preempt(() => Promise.reject(new Error('broken job'))),
      /broken job/,
    );
    await settle();
    started[1]!.end();
    assert.equal(await first, 'c-2');
  });
});

describe('a pull that waits for another cycle', () => {
  it('receives the progress of that cycle, and each event until its end', async () => {
    const { started, pull } = interruptible();
    const first = pull('poll');
    await settle();
    const { onEvent } = started[0]!.options;
    onEvent({ type: 'step.progress', cycle: 'c-1', step: 'fetch', doneBytes: 4, totalBytes: 10 });
    const events: CycleEventLine[] = [];
    const second = pull('pull', { onEvent: (event) => events.push(event) });
    onEvent({ type: 'step.progress', cycle: 'c-1', step: 'fetch', doneBytes: 6, totalBytes: 10 });
    const wait = { cycle: 'c-1', trigger: 'poll', step: 'fetch', doneBytes: 4, totalBytes: 10 };
    const next = { cycle: 'c-1', step: 'fetch', doneBytes: 6, totalBytes: 10 };
    assert.deepEqual(events, [
      { type: 'cycle.awaited', ...wait },
      { type: 'step.progress', ...next },
    ]);
    started[0]!.end();
    await first;
    await settle();
    started[1]!.end();
    assert.equal(await second, 'c-2');
  });

  it('ends an unforced cycle once when the pull is forced', async () => {
    const { started, pull } = interruptible();
    const all = [pull('poll'), settle().then(() => pull('force'))];
    await settle();
    await settle();
    assert.equal(started[1]!.options.trigger, 'force');
    all.push(pull('force'));
    await settle();
    assert.equal(started.length, 2);
    started[1]!.end();
    await settle();
    started[2]!.end();
    assert.deepEqual(await Promise.all(all), ['c-2', 'c-2', 'c-3']);
  });
});

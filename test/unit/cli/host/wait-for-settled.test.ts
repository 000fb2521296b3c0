import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Answer } from '../../../../src/cli/console/command.js';
import { cycleAnswer } from '../../../../src/cli/host/cycle-command.js';
import { type SettledWaitObservation, waitForSettled } from '../../../../src/cli/host/wait-for-settled.js';
import type { BakeStatus, GroupStatus, StatusReport } from '../../../../src/core/status/status.js';
import { cycleResult, problem } from '../../../kit/cli/cycle-results.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const minute = 60_000;
const baking: BakeStatus = { state: 'baking', leftMs: 10 * minute, forMs: 10 * minute, ends: [] };
const settled: BakeStatus = { state: 'settled', atMs: 1, observed: true };
const failed: BakeStatus = {
  ...{ state: 'failed', cause: 'WORKER_DIED', text: 'dns/a ended abnormally once', atMs: 1, ends: [] },
};

function hostWith(serial: number | undefined, bake?: BakeStatus, more: Partial<StatusReport> = {}) {
  const bundle = { bundle: 'dns-edge', channel: 'stable', ...(bake && { bake }) };
  return statusReport({ bundles: [serial === undefined ? bundle : { ...bundle, serial }], ...more });
}

/** Observations with these reports; the last one repeats. */
function settling(
  reports: readonly StatusReport[],
  { waitMs, by = 'agent', pull = cycleResult('activated') }: SettlingOptions = {},
) {
  const clock = fakeClock({ mode: 'skip' });
  const stop = new AbortController();
  const texts: string[] = [];
  let observations = 0;
  const reporter = {
    note: () => undefined,
    begin: (_step: string, text?: string) => void texts.push(text ?? ''),
    progress: () => undefined,
    finish: () => undefined,
    drop: () => undefined,
    warn: () => undefined,
  };
  const answer = () =>
    waitForSettled({
      answer: cycleAnswer(pull),
      ...(waitMs === undefined ? {} : { waitMs }),
      context: { clock, reporter, signal: stop.signal },
      observe: async () => {
        const report = reports[Math.min(observations, reports.length - 1)];
        observations += 1;
        assert.ok(report);
        return { report, by };
      },
    });
  return { answer, clock, stop, texts, observations: () => observations };
}

interface SettlingOptions {
  readonly waitMs?: number;
  readonly by?: SettledWaitObservation['by'];
  readonly pull?: ReturnType<typeof cycleResult>;
}

describe('waiting for a release to settle', () => {
  it('ends with 0 when every active release has settled', async () => {
    const { answer, texts } = settling([hostWith(7, baking), hostWith(7, baking), hostWith(7, settled)]);
    const { outcome, exitCode, lines, details } = await answer();
    assert.deepEqual([outcome, exitCode, lines[0]], ['settled', 0, 'SETTLED  dns-edge 7 settled']);
    assert.deepEqual(details['releases'], [{ bundle: 'dns-edge', serial: 7, state: 'settled' }]);
    const { outcome: outcomeOfPull, exitCode: exitCodeOfPull } = details['pull'] as Answer;
    assert.deepEqual([outcomeOfPull, exitCodeOfPull], ['activated', 0]);
    assert.deepEqual(texts.slice(0, 1), ['dns-edge 7 bakes, 10 min left']);
  });

  it('does not wait for an agent if the command observes the workers itself', async () => {
    const waiting = { ...baking, waitsFor: { what: 'agent' } } as const;
    const { answer } = settling([hostWith(7, waiting)], { waitMs: minute, by: 'command' });
    assert.equal((await answer()).lines[0], 'BAKING  dns-edge 7 bakes, 10 min left');
    const { answer: withAgent } = settling([hostWith(7, waiting)], { waitMs: minute });
    assert.match((await withAgent()).lines[0] ?? '', /waits for an agent/);
  });

  it('names the reason for which a bake time waits, and observes no more often', async () => {
    const waiting = { ...baking, leftMs: 0, waitsFor: { what: 'probe', of: ['dns/a'] } } as const;
    const { answer, observations } = settling([hostWith(7, waiting)], { waitMs: minute });
    const { exitCode, lines } = await answer();
    assert.equal(exitCode, 8);
    assert.equal(lines[0], 'BAKING  dns-edge 7 bakes, and waits for a right answer of the probe of dns/a');
    assert.equal(observations(), 31, 'each 2 s');
  });

  it('observes without an agent each tenth of the shortest bake time, between 2 and 10 s', async () => {
    const observationsIn = async (forMs: number): Promise<number> => {
      const waiting = { ...baking, forMs, waitsFor: { what: 'probe', of: ['dns/a'] } } as const;
      const { answer, observations } = settling([hostWith(7, waiting)], { waitMs: minute, by: 'command' });
      await answer();
      return observations();
    };
    assert.deepEqual(
      [await observationsIn(10_000), await observationsIn(30_000), await observationsIn(10 * minute)],
      [31, 21, 7],
      'each 2, 3 and 10 s',
    );
  });

  it('ends with 0 at once for a release that settled before, or has no bake time', async () => {
    for (const bake of [settled, undefined]) {
      const { answer, observations } = settling([hostWith(7, bake)]);
      const { outcome, exitCode } = await answer();
      assert.deepEqual([outcome, exitCode, observations()], ['settled', 0, 1]);
    }
  });

  it('reports that a bake time was not observed', async () => {
    const unobserved = { ...settled, observed: false };
    const { exitCode, lines } = await settling([hostWith(7, unobserved)]).answer();
    assert.deepEqual([exitCode, lines[0]?.includes('but its bake time was not observed')], [0, true]);
  });

  it('ends with 5 and the cause when the release was rolled back', async () => {
    const refusal = {
      ...{ bundle: 'dns-edge', channel: 'stable', serial: 7, code: 'BAKE_FAILED' },
      ...{ reason: 'failed 40 s after activation', atMs: 1, retryAtMs: 2 },
    };
    const back = hostWith(6, settled, { refusals: [refusal] });
    const { outcome, exitCode, lines, details } = await settling([hostWith(7, baking), back]).answer();
    assert.deepEqual([outcome, exitCode, details['code']], ['rolled-back', 5, 'BAKE_FAILED']);
    assert.match(lines[0] ?? '', /^ROLLED BACK {2}dns-edge 7 was taken back \[BAKE_FAILED\] failed 40 s/);
  });

  it('names lost contact as the cause, although no refusal is remembered', async () => {
    const message = 'contact lost after dns-edge 7; serial 7 is held until a newer release';
    const lost = (serial: number) => ({
      ...problem('CONTACT_LOST', message),
      facts: { bundle: 'dns-edge', serial },
    });
    const back = hostWith(6, settled, { problems: [lost(5), lost(7)] });
    const { lines, details } = await settling([hostWith(7, baking), back]).answer();
    assert.equal(lines[0], `ROLLED BACK  dns-edge 7 was taken back [CONTACT_LOST] ${message}`);
    const [release] = details['releases'] as { cause?: string }[];
    assert.equal(release?.cause, 'CONTACT_LOST');
    const other = hostWith(6, settled, { problems: [lost(5)] });
    const { lines: plain } = await settling([hostWith(7, baking), other]).answer();
    assert.equal(plain[0], 'ROLLED BACK  dns-edge 7 is not active any more');
  });

  it('names a rollback by an operator and a withdrawal, which are no failures', async () => {
    const end = async (more: Partial<StatusReport>, offered = 7) => {
      const { bundles, ...report } = hostWith(6, settled, more);
      const server = { serial: offered, revision: 'a' };
      const back = { ...report, bundles: bundles.map((one) => ({ ...one, server })) };
      const { lines, details, exitCode } = await settling([hostWith(7, baking), back]).answer();
      return [exitCode, details['code'], lines[0]];
    };
    const hold = { bundle: 'dns-edge', serial: 7, by: 'anna', atMs: 1, reason: 'slow' };
    const byAnna = 'ROLLED BACK  dns-edge 7 was rolled back by user anna: slow';
    assert.deepEqual(await end({ holds: [hold] }), [5, 'RELEASE_HELD', byAnna]);
    const withdrawn = 'ROLLED BACK  dns-edge 7 was withdrawn by its publisher, which offers 6 again';
    assert.deepEqual(await end({}, 6), [5, 'RELEASE_WITHDRAWN', withdrawn]);
    const unknown = 'ROLLED BACK  dns-edge 7 is not active any more';
    assert.deepEqual(await end({ holds: [{ ...hold, by: 'writ' }] }), [5, undefined, unknown]);
  });

  it('ends with 5 when nothing is active any more', async () => {
    const { exitCode } = await settling([hostWith(7, baking), hostWith(undefined)]).answer();
    assert.equal(exitCode, 5);
  });

  it('gives an agent two minutes to restore, then ends with 6', async () => {
    const restored = settling([hostWith(7, baking), hostWith(7, failed), hostWith(6, settled)]);
    assert.equal((await restored.answer()).exitCode, 5);
    const stuck = settling([hostWith(7, baking), hostWith(7, failed)]);
    const { outcome, exitCode } = await stuck.answer();
    assert.deepEqual([outcome, exitCode], ['blocked', 6]);
    assert.equal(Math.round(stuck.clock.monotonicMs() / 1000) >= 122, true);
  });

  it('ends with 6 at once when the command itself found nothing to restore', async () => {
    const { answer, observations } = settling([hostWith(7, failed)], { by: 'command' });
    const { exitCode, lines } = await answer();
    assert.deepEqual([exitCode, observations()], [6, 1]);
    assert.match(lines[0] ?? '', /^BLOCKED {2}nothing could be restored: dns-edge 7 failed \[WORKER_DIED\]/);
  });

  it('ends with 8 after three bake times, or after the given timeout', async () => {
    const byDefault = settling([hostWith(7, baking)]);
    const startMs = byDefault.clock.monotonicMs();
    const { outcome, exitCode } = await byDefault.answer();
    assert.deepEqual([outcome, exitCode], ['baking', 8]);
    assert.equal(byDefault.clock.monotonicMs() - startMs, 30 * minute);
    const asked = settling([hostWith(7, baking)], { waitMs: 4500 });
    const fromMs = asked.clock.monotonicMs();
    assert.equal((await asked.answer()).exitCode, 8);
    assert.equal(asked.clock.monotonicMs() - fromMs, 4500);
  });

  it('continues with a newer release that became active during the wait', async () => {
    const { answer } = settling([hostWith(7, baking), hostWith(8, baking), hostWith(8, settled)]);
    const { exitCode, details } = await answer();
    assert.deepEqual(
      [exitCode, details['releases']],
      [0, [{ bundle: 'dns-edge', serial: 8, state: 'settled' }]],
    );
    const back = await settling([hostWith(7, baking), hostWith(8, baking), hostWith(7, settled)]).answer();
    assert.equal(back.exitCode, 5);
  });

  it('reports the present generation and, separately, the result of the pull after a restore', async () => {
    const back = hostWith(6, settled, { generation: 19, confirmed: true });
    const { details, lines } = await settling([hostWith(7, baking, { generation: 18 }), back]).answer();
    const { generation, changed, confirmed, bundles, pull } = details;
    assert.deepEqual([generation, changed, confirmed, bundles], [19, true, true, undefined]);
    assert.equal((pull as { generation: number }).generation, 18);
    assert.deepEqual(lines.slice(1, 4), [
      '  now: generation 19 is active (dns-edge 6), confirmed by every worker',
      '  at the end of the pull:',
      '    ACTIVATED generation 18 (dns-edge 42, 4f1c2e9) in 1.1 s',
    ]);
    const unchanged = { pull: cycleResult('unchanged', { fromGeneration: 18, generation: 18 }) };
    const same = settling([hostWith(7, settled, { generation: 18, confirmed: true })], unchanged);
    const { lines: plain, details: kept } = await same.answer();
    assert.deepEqual([kept['changed'], plain.length], [false, 2]);
    const lost = settling([hostWith(7, settled, { generation: 18, confirmed: false })]);
    assert.match((await lost.answer()).lines[1] ?? '', /^ {2}now: generation 18 is active \(dns-edge 7\)/);
  });

  it('reports that workers have confirmed since a pull that could not notify them', async () => {
    const settledNow = hostWith(7, settled, { generation: 18, confirmed: true });
    const { details, lines } = await settling([settledNow], { pull: cycleResult('degraded') }).answer();
    assert.deepEqual(
      [details['confirmed'], details['code'], details['problems']],
      [true, undefined, undefined],
    );
    assert.match(lines[1] ?? '', /^ {2}now: generation 18 is active .* confirmed by every worker$/);
  });

  it('reports that a worker was notified since, if its group needs no confirmation', async () => {
    const pull = cycleResult('degraded', { fromGeneration: 17, generation: 18, confirmed: false });
    const [worker] = statusReport().workers;
    assert.ok(worker);
    const settledWith = (state: 'notified' | 'pending', findings: GroupStatus['findings'] = []) => {
      const group = { group: 'dns', workers: 1, confirmed: 0, min: 1, findings };
      const now = { generation: 18, confirmed: false, workers: [{ ...worker, state }], groups: [group] };
      return settling([hostWith(7, settled, now)], { pull }).answer();
    };
    const { exitCode, details, lines } = await settledWith('notified');
    assert.deepEqual([exitCode, details['code']], [0, undefined]);
    assert.match(lines[1] ?? '', /^ {2}now: generation 18 is active .*, and every worker was notified$/);
    assert.equal((await settledWith('pending')).exitCode, 4);
    const finding = { level: 'warning', code: 'WORKER_UNCONFIRMED', text: '' } as const;
    assert.equal((await settledWith('notified', [finding])).exitCode, 4);
  });

  it('names the workers that do not use the release at the end, if they differ from those after the pull', async () => {
    const pull = cycleResult('degraded', { fromGeneration: 17, generation: 18, confirmed: false });
    const [worker] = statusReport().workers;
    assert.ok(worker);
    const linesWith = async (missedBefore: string, missedNow: string) => {
      const reportWith = (missed: string) => {
        const workers = ['w1', 'w2'].map((name) => ({
          ...worker,
          ...{ group: 'g', worker: name, state: name === missed ? ('unreachable' as const) : worker.state },
        }));
        return hostWith(7, baking, { generation: 18, confirmed: false, workers });
      };
      const reports = [reportWith(missedBefore), reportWith(missedNow)];
      return (await settling(reports, { pull, waitMs: minute }).answer()).lines;
    };
    assert.equal(
      (await linesWith('w1', 'w2'))[1],
      '  now: generation 18 is active (dns-edge 7), not used by g/w2',
    );
    assert.match((await linesWith('w1', 'w1'))[1] ?? '', /^ {2}DEGRADED/);
  });

  it('keeps the exit code of a pull that missed a worker, unless the worker is confirmed later', async () => {
    const pull = cycleResult('degraded');
    const pending = statusReport().workers.map((worker) => ({ ...worker, state: 'pending' as const }));
    const missed = settling([hostWith(7, settled, { confirmed: false, workers: pending })], { pull });
    assert.equal((await missed.answer()).exitCode, 4);
    assert.equal((await settling([hostWith(7, settled)], { pull }).answer()).exitCode, 0);
  });

  it('ends with 130 on a signal', async () => {
    const { answer, stop } = settling([hostWith(7, baking)]);
    stop.abort();
    assert.equal((await answer()).exitCode, 130);
  });
});

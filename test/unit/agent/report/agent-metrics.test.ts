import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CycleEnd } from '../../../../src/agent/job/cycle-result.js';
import { startCycleProgress } from '../../../../src/agent/job/progress.js';
import { type AgentMetrics, createAgentMetrics } from '../../../../src/agent/report/agent-metrics.js';
import type { CycleResult } from '../../../../src/core/cycle/cycle-report.js';
import { createMetrics } from '../../../../src/platform/telemetry/metrics.js';
import { bundleResult, cycleResult, problem, startedAtMs } from '../../../kit/cli/cycle-results.js';
import { statusReport, workerStatus } from '../../../kit/cli/status-reports.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';

const reportAtMs = statusReport().atMs;

async function metricsOf(): Promise<AgentMetrics> {
  return createAgentMetrics(await createMetrics({ process: 'omit' }), () => reportAtMs + 5000);
}

async function valuesOf(metrics: AgentMetrics): Promise<ReadonlyMap<string, number>> {
  const lines = (await metrics.text()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return new Map(
    lines.map((line) => {
      const space = line.lastIndexOf(' ');
      return [line.slice(0, space), Number(line.slice(space + 1))];
    }),
  );
}

async function endOf(result: CycleResult): Promise<CycleEnd> {
  const clock = fakeClock({ mode: 'skip' });
  const progress = startCycleProgress({ cycle: result.cycle, trigger: result.trigger, clock });
  await progress.step('refresh', async () => {
    await clock.sleep(1500);
    return { value: undefined, text: '' };
  });
  for (const bytes of [100, 700, 50, 300]) progress.reportBytes('fetch', bytes, 1000);
  return { result, progress };
}

describe('the metrics of the agent', () => {
  it('have stable names', async () => {
    const metrics = await metricsOf();
    metrics.observer.onStatus?.(statusReport());
    metrics.observer.onCycle?.(await endOf(cycleResult('activated')));
    const names = [...(await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(
      ([, name, type]) => `${type} ${name}`,
    );
    assert.deepEqual(names.sort(), [
      'counter writ_agent_cycles_total',
      'counter writ_agent_fetched_bytes_total',
      'counter writ_agent_refusals_total',
      'counter writ_agent_scrubs_total',
      'counter writ_agent_step_duration_seconds_total',
      'counter writ_agent_steps_total',
      'gauge writ_agent_active_generation',
      'gauge writ_agent_active_since_timestamp_seconds',
      'gauge writ_agent_bundle_bake',
      'gauge writ_agent_bundle_missed_seconds',
      'gauge writ_agent_bundle_offered_serial',
      'gauge writ_agent_bundle_serial',
      'gauge writ_agent_confirmed',
      'gauge writ_agent_freshness',
      'gauge writ_agent_freshness_seconds',
      'gauge writ_agent_health',
      'gauge writ_agent_held_releases',
      'gauge writ_agent_info',
      'gauge writ_agent_last_contact_timestamp_seconds',
      'gauge writ_agent_last_cycle_outcome',
      'gauge writ_agent_last_cycle_timestamp_seconds',
      'gauge writ_agent_next_poll_timestamp_seconds',
      'gauge writ_agent_paused',
      'gauge writ_agent_problems',
      'gauge writ_agent_refused_releases',
      'gauge writ_agent_trust_expiry_timestamp_seconds',
      'gauge writ_agent_trust_version',
      'gauge writ_agent_workers',
    ]);
  });

  it('show the values of the last report', async () => {
    const metrics = await metricsOf();
    metrics.observer.onStatus?.(
      statusReport({
        confirmed: false,
        workers: [workerStatus('a', 'confirmed'), workerStatus('b', 'unreachable')],
        freshness: { state: 'stale', lastContactAtMs: startedAtMs, ageMs: 60_000 },
        problems: [problem('WORKER_UNREACHABLE', 'b'), problem('WORKER_UNREACHABLE', 'c')],
      }),
    );
    const values = await valuesOf(metrics);
    const expected: Readonly<Record<string, number>> = {
      writ_agent_active_generation: 18,
      writ_agent_active_since_timestamp_seconds: startedAtMs / 1000,
      'writ_agent_bundle_serial{bundle="access",channel="stable"}': 9,
      'writ_agent_bundle_offered_serial{bundle="access",channel="stable"}': 10,
      writ_agent_confirmed: 0,
      writ_agent_health: 1,
      'writ_agent_info{version="0.1.0",host="edge-fra1-03"}': 1,
      'writ_agent_last_cycle_outcome{outcome="activated"}': 1,
      'writ_agent_last_cycle_outcome{outcome="failed"}': 0,
      'writ_agent_freshness{state="stale"}': 1,
      'writ_agent_freshness{state="fresh"}': 0,
      writ_agent_freshness_seconds: 65,
      'writ_agent_problems{code="WORKER_UNREACHABLE"}': 2,
      'writ_agent_trust_version{role="root"}': 1,
      'writ_agent_workers{group="resolver",state="confirmed"}': 1,
      'writ_agent_workers{group="resolver",state="unreachable"}': 1,
      'writ_agent_workers{group="resolver",state="refused"}': 0,
    };
    for (const [name, value] of Object.entries(expected)) assert.equal(values.get(name), value, name);
  });

  it('drop the series of ended problems', async () => {
    const metrics = await metricsOf();
    metrics.observer.onStatus?.(statusReport({ problems: [problem('DISK_FULL', 'full')] }));
    assert.ok((await valuesOf(metrics)).has('writ_agent_problems{code="DISK_FULL"}'));
    metrics.observer.onStatus?.(statusReport());
    assert.ok(!(await valuesOf(metrics)).has('writ_agent_problems{code="DISK_FULL"}'));
  });

  it('count cycles, refusals, steps and bytes', async () => {
    const metrics = await metricsOf();
    const refused = bundleResult('rejected', { problem: problem('CHECK_FAILED', 'no') });
    metrics.observer.onCycle?.(await endOf(cycleResult('rejected', { bundles: [refused] })));
    const remembered = { ...refused, remembered: true } as const;
    metrics.observer.onCycle?.(await endOf(cycleResult('rejected', { bundles: [remembered] })));
    const values = await valuesOf(metrics);
    assert.equal(values.get('writ_agent_cycles_total{outcome="rejected"}'), 2);
    assert.equal(values.get('writ_agent_cycles_total{outcome="blocked"}'), 0);
    assert.equal(values.get('writ_agent_refusals_total{bundle="dns-edge"}'), 1);
    assert.equal(values.get('writ_agent_steps_total{step="refresh",verdict="ok"}'), 2);
    assert.equal(values.get('writ_agent_step_duration_seconds_total{step="refresh"}'), 3);
    // A restarted transfer also counts the bytes of its earlier attempt.
    assert.equal(values.get('writ_agent_fetched_bytes_total'), 2000);
  });

  it('count the steps and bytes of a cycle that ended early for another job, but no outcome', async () => {
    const metrics = await metricsOf();
    metrics.observer.onEndedEarly?.(await endOf(cycleResult('failed')));
    const values = await valuesOf(metrics);
    assert.equal(values.get('writ_agent_cycles_total{outcome="failed"}'), 0);
    assert.equal(values.get('writ_agent_steps_total{step="refresh",verdict="ok"}'), 1);
    assert.equal(values.get('writ_agent_fetched_bytes_total'), 1000);
  });

  it('continue the counts of scans in the ledger', async () => {
    const metrics = await metricsOf();
    const scrub = (looks: number) =>
      statusReport({
        scrub: {
          ...{ atMs: 0, outcome: 'intact', found: 0, damage: [] },
          counts: { looks, damaged: 1, repaired: 1, failed: 0 },
        },
      });
    for (const looks of [9, 9, 10]) metrics.observer.onStatus?.(scrub(looks));
    const values = await valuesOf(metrics);
    assert.equal(values.get('writ_agent_scrubs_total{result="looks"}'), 10);
    assert.equal(values.get('writ_agent_scrubs_total{result="damaged"}'), 1);
  });

  it('have a bounded number of roles', async () => {
    const metrics = await metricsOf();
    const trust = Array.from({ length: 500 }, (_, index) => ({
      role: `team-${index}`,
      version: 1,
      expiresAtMs: 0,
    }));
    metrics.observer.onStatus?.(statusReport({ trust }));
    const series = [...(await valuesOf(metrics)).keys()].filter((name) => name.includes('role="team-'));
    assert.equal(series.length, 2 * 64);
  });
});

// Prometheus metrics of the agent. Counters grow at the end of a cycle; gauges are computed from the last report at each scrape. Names
// are stable. Labels come from the configuration and from fixed sets, and never from workers, servers or bundles, which could create
// series without bound. The exception are delegated roles, with a series for the first 64.
import { outcomes } from '../../core/cycle/sync-machine.js';
import { judgeHostHealth } from '../../core/status/host-health.js';
import type { StatusReport } from '../../core/status/status.js';
import type { Counter, Metrics } from '../../platform/telemetry/metrics.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { newRefusals } from './events.js';
import type { AgentObserver } from './observer.js';

export interface AgentMetrics {
  readonly observer: AgentObserver;
  /** The metrics in the text format of Prometheus, as of the last report. */
  text(): Promise<string>;
}

/**
 * @param nowMs returns epoch milliseconds, for ages
 * @returns an observer that counts cycles, refusals, steps and scrubs; and text(), which adds the gauges of the last status
 *   report. Before the first report there are no gauges
 */
export function createAgentMetrics(metrics: Metrics, nowMs: () => number): AgentMetrics {
  const counters = countersOf(metrics);
  const fill = gaugesOf(metrics);
  let report: StatusReport | undefined;
  let scrubs: Readonly<Record<string, number>> = {};
  return {
    observer: {
      onStatus: (next) => {
        report = next;
        const counts: Readonly<Record<string, number>> = { ...next.scrub?.counts };
        // The counts are in the ledger, so they continue after a restart of the agent.
        for (const [result, count] of Object.entries(counts))
          counters.scrubs.add({ result }, Math.max(0, count - (scrubs[result] ?? 0)));
        scrubs = counts;
      },
      onCycle: (end) => {
        counters.cycles.add({ outcome: end.result.outcome });
        for (const { bundle } of newRefusals(end.result)) counters.refusals.add({ bundle });
        countSteps(counters, end);
      },
      onEndedEarly: (end) => countSteps(counters, end),
    },
    text: () => {
      if (report !== undefined) fill(report, nowMs());
      return metrics.text();
    },
  };
}

type Counters = ReturnType<typeof countersOf>;

function countersOf(metrics: Metrics) {
  const counter = (name: string, help: string, ...labels: string[]): Counter =>
    metrics.counter({ name: `writ_agent_${name}`, help, labels });
  const counters = {
    cycles: counter('cycles_total', 'Cycles, rollbacks, repairs and recoveries by outcome.', 'outcome'),
    refusals: counter('refusals_total', 'Releases refused, by bundle; remembered ones once.', 'bundle'),
    steps: counter('steps_total', 'Steps of cycles by verdict.', 'step', 'verdict'),
    stepSeconds: counter('step_duration_seconds_total', 'Time in steps of cycles.', 'step'),
    fetched: counter('fetched_bytes_total', 'Bytes of archives that were fetched.'),
    scrubs: counter('scrubs_total', 'Scans of the policy on disk, by result.', 'result'),
  };
  for (const outcome of outcomes) counters.cycles.add({ outcome }, 0);
  counters.fetched.add({}, 0);
  return counters;
}

function countSteps(counters: Counters, { progress }: CycleEnd): void {
  counters.fetched.add({}, progress.fetchedBytes());
  for (const { step, verdict, durationMs } of progress.steps) {
    counters.steps.add({ step, verdict });
    counters.stepSeconds.add({ step }, durationMs / 1000);
  }
}

/** The help text of each gauge, then the names of its labels. */
const gauges = {
  info: ['The agent; its value is always 1.', 'version', 'host'],
  health: ['As `writ health`: 0 ok, 1 warning, 2 critical.'],
  problems: ['Problems of this host now, by code.', 'code'],
  last_cycle_outcome: ['The outcome of the last cycle is 1, the others 0.', 'outcome'],
  last_cycle_timestamp_seconds: ['When the last cycle ended; 0: none has.'],
  next_poll_timestamp_seconds: ['When the next poll is; 0: unknown.'],
  active_generation: ['The active generation; 0: no policy is active.'],
  active_since_timestamp_seconds: ['When it became active.'],
  confirmed: ['1 when every worker proved the active generation.'],
  bundle_serial: ['Active serial of a bundle.', 'bundle', 'channel'],
  bundle_offered_serial: ['Serial that the server offers.', 'bundle', 'channel'],
  bundle_missed_seconds: [
    'Seconds since a release is offered that this host could not have; 0: it has what is offered.',
    ...['bundle', 'channel'],
  ],
  bundle_bake: ['Where the active release stands in its bake time: 1, the others 0.', 'bundle', 'state'],
  refused_releases: ['Refused releases that could still be tried.'],
  held_releases: ['Releases that a person holds.'],
  paused: ['1 while nothing is activated.'],
  workers: ['Workers of a group by state.', 'group', 'state'],
  freshness: ['The state of the metadata is 1, the others 0.', 'state'],
  freshness_seconds: ['Seconds since policy was last proven current.'],
  last_contact_timestamp_seconds: ['When the server was last reached.'],
  trust_expiry_timestamp_seconds: ['When a role of the metadata expires.', 'role'],
  trust_version: ['Version of a role of the metadata.', 'role'],
} as const satisfies Readonly<Record<string, readonly [help: string, ...labels: string[]]>>;

type GaugeName = keyof typeof gauges;
type Series = readonly [value: number | undefined, labels: Readonly<Record<string, string>>];

/** Bounds the series; a usual repository has fewer roles. */
const maxRoles = 64;
const workerStates = ['confirmed', 'notified', 'refused', 'unreachable', 'pending'] as const;
const bakeStates = ['baking', 'settled', 'failed'] as const;
const freshnessStates = ['fresh', 'stale', 'frozen', 'refused'] as const;
const levels = { ok: 0, warning: 1, critical: 2 } as const;

/** @returns the value or the series of each gauge; undefined for an unknown value, which gets no series */
function valuesOf(
  report: StatusReport,
  nowMs: number,
): Readonly<Record<GaugeName, number | undefined | readonly Series[]>> {
  const { version, host, last, bundles, workers, freshness, problems } = report;
  const { ageMs } = freshness;
  const trust = report.trust.slice(0, maxRoles);
  return {
    info: [[1, { version, host }]],
    health: levels[judgeHostHealth(report).level],
    problems: [...new Set(problems.map(({ code }) => code))].map((code) => [
      problems.filter((one) => one.code === code).length,
      { code },
    ]),
    last_cycle_outcome: last && oneOf(outcomes, last.outcome, 'outcome'),
    last_cycle_timestamp_seconds: seconds(last?.atMs),
    next_poll_timestamp_seconds: seconds(report.nextPollAtMs),
    active_generation: report.generation,
    active_since_timestamp_seconds: seconds(report.activatedAtMs),
    confirmed: Number(report.confirmed),
    bundle_serial: bundles.map(({ bundle, channel, serial }) => [serial, { bundle, channel }]),
    bundle_offered_serial: bundles.map(({ bundle, channel, server }) => [
      server?.serial,
      { bundle, channel },
    ]),
    bundle_missed_seconds: bundles.map(({ bundle, channel, missed }) => [
      missed === undefined ? 0 : Math.max(0, nowMs - missed.sinceMs) / 1000,
      { bundle, channel },
    ]),
    bundle_bake: bundles.flatMap(({ bundle, bake }) =>
      bake === undefined
        ? []
        : bakeStates.map((state): Series => [Number(bake.state === state), { bundle, state }]),
    ),
    refused_releases: report.refusals.length,
    held_releases: report.holds.length,
    paused: Number(report.pause !== undefined),
    workers: [...new Set(workers.map(({ group }) => group))].flatMap((group) =>
      workerStates.map(
        (state): Series => [
          workers.filter((one) => one.group === group && one.state === state).length,
          { group, state },
        ],
      ),
    ),
    freshness: oneOf(freshnessStates, freshness.state, 'state'),
    freshness_seconds: seconds(ageMs === undefined ? undefined : ageMs + Math.max(0, nowMs - report.atMs)),
    last_contact_timestamp_seconds: seconds(freshness.lastContactAtMs),
    trust_expiry_timestamp_seconds: trust.map(({ role, expiresAtMs }) => [seconds(expiresAtMs), { role }]),
    trust_version: trust.map(({ role, version: number }) => [number, { role }]),
  };
}

/** @returns a series with 1 for the current value and with 0 for each other one */
function oneOf(all: readonly string[], current: string, label: string): Series[] {
  return all.map((one) => [Number(one === current), { [label]: one }]);
}

/** @returns a function that sets every gauge from a report */
function gaugesOf(metrics: Metrics): (report: StatusReport, nowMs: number) => void {
  const made = Object.entries(gauges).map(([name, [help, ...labels]]) => {
    const gauge = metrics.gauge({ name: `writ_agent_${name}`, help, labels });
    return [name as GaugeName, gauge] as const;
  });
  return (report, nowMs) => {
    const values = valuesOf(report, nowMs);
    for (const [name, gauge] of made) {
      gauge.clear();
      const value = values[name];
      const series: readonly Series[] = typeof value === 'object' ? value : [[value, {}]];
      for (const [one, labels] of series) if (one !== undefined) gauge.set(labels, one);
    }
  };
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

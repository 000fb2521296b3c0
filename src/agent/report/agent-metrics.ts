// What the agent tells Prometheus, by name. An observer: counters grow at the end of a cycle, gauges are read from the last
// report when somebody asks. Names are a promise. Labels come from the configuration and from fixed sets, never from
// what workers, servers or bundles say, but for delegated roles, of which the first few have a series.
import type { CycleResult } from '../../core/cycle/cycle-report.js';
import { type Outcome, outcomes } from '../../core/cycle/sync-machine.js';
import { judgeHealth } from '../../core/status/host-health.js';
import type { StatusReport } from '../../core/status/status.js';
import type { Counter, Gauge, Metrics } from '../../platform/telemetry/metrics.js';
import type { CycleEnd } from '../job/cycle-result.js';
import type { StepRecord } from '../job/progress.js';
import type { AgentObserver } from './observer.js';

export interface AgentMetrics {
  readonly observer: AgentObserver;
  /** Prometheus' text, as of the last report. */
  text(): Promise<string>;
}

/** @param nowMs epoch milliseconds, for what is counted from now */
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
        // Kept in the ledger: a restart of the agent goes on with them.
        for (const [result, count] of Object.entries(counts))
          counters.scrubs.add({ result }, Math.max(0, count - (scrubs[result] ?? 0)));
        scrubs = counts;
      },
      onCycle: (end) => count(counters, end),
    },
    text: () => {
      if (report !== undefined) fill(report, nowMs());
      return metrics.text();
    },
  };
}

interface Counters {
  readonly cycles: Counter;
  readonly refusals: Counter;
  readonly steps: Counter;
  readonly stepSeconds: Counter;
  readonly fetched: Counter;
  readonly scrubs: Counter;
}

function countersOf(metrics: Metrics): Counters {
  const counter = (name: string, help: string, ...labels: string[]): Counter =>
    metrics.counter({ name: `writ_agent_${name}`, help, labels });
  const cycles = counter('cycles_total', 'Cycles, rollbacks, repairs and recoveries by outcome.', 'outcome');
  const refusals = counter('refusals_total', 'Releases refused, by bundle; remembered ones once.', 'bundle');
  const steps = counter('steps_total', 'Steps of cycles by verdict.', 'step', 'verdict');
  const stepSeconds = counter('step_duration_seconds_total', 'Time in steps of cycles.', 'step');
  const fetched = counter('fetched_bytes_total', 'Bytes of archives that were fetched.');
  const scrubs = counter('scrubs_total', 'Looks over the policy on disk, by what came of them.', 'result');
  for (const outcome of outcomes) cycles.add({ outcome }, 0);
  fetched.add({}, 0);
  return { cycles, refusals, steps, stepSeconds, fetched, scrubs };
}

function count(counters: Counters, { result, story }: CycleEnd): void {
  counters.cycles.add({ outcome: result.outcome });
  counters.fetched.add({}, story.fetchedBytes());
  for (const bundle of refusedIn(result)) counters.refusals.add({ bundle });
  for (const one of story.steps) countStep(counters, one);
}

function countStep({ steps, stepSeconds }: Counters, { step, verdict, durationMs }: StepRecord): void {
  steps.add({ step, verdict });
  stepSeconds.add({ step }, durationMs / 1000);
}

function refusedIn({ bundles }: CycleResult): string[] {
  return bundles
    .filter((one) => refusing.has(one.outcome) && one.remembered !== true)
    .map((one) => one.bundle);
}

const refusing: ReadonlySet<Outcome> = new Set(['rejected', 'rolled-back']);

/** More delegated roles than a repository has; of more, the first ones have a series. */
const maxRoles = 64;
const workerStates = ['confirmed', 'told', 'refused', 'unreachable', 'waiting'] as const;
const freshnessStates = ['fresh', 'stale', 'frozen', 'refused'] as const;
const levels = { ok: 0, warning: 1, critical: 2 } as const;

type Set = (gauge: Gauge, value: number | undefined, labels?: Readonly<Record<string, string>>) => void;

/** @returns fills every gauge from a report; what the report does not say has no series */
function gaugesOf(metrics: Metrics): (report: StatusReport, nowMs: number) => void {
  const all: Gauge[] = [];
  const gauge = (name: string, help: string, ...labels: string[]): Gauge => {
    const one = metrics.gauge({ name: `writ_agent_${name}`, help, labels });
    all.push(one);
    return one;
  };
  const set: Set = (one, value, labels = {}) => {
    if (value !== undefined) one.set(labels, value);
  };
  const fillers = [hostGauges, cycleGauges, policyGauges, workerGauges, trustGauges].map((make) =>
    make(gauge, set),
  );
  return (report, nowMs) => {
    for (const one of all) one.clear();
    for (const fill of fillers) fill(report, nowMs);
  };
}

type Make = (name: string, help: string, ...labels: string[]) => Gauge;
type Fill = (report: StatusReport, nowMs: number) => void;

function hostGauges(gauge: Make, set: Set): Fill {
  const info = gauge('info', 'The agent; its value is always 1.', 'version', 'host');
  const health = gauge('health', 'As `writ health`: 0 ok, 1 warning, 2 critical.');
  const problems = gauge('problems', 'Problems of this host now, by code.', 'code');
  return (report) => {
    set(info, 1, { version: report.version, host: report.host });
    set(health, levels[judgeHealth(report).level]);
    const codes = report.problems.map((one) => one.code);
    for (const code of new Set(codes)) set(problems, codes.filter((one) => one === code).length, { code });
  };
}

function cycleGauges(gauge: Make, set: Set): Fill {
  const outcome = gauge('last_cycle_outcome', 'The outcome of the last cycle is 1, the others 0.', 'outcome');
  const at = gauge('last_cycle_timestamp_seconds', 'When the last cycle ended; 0: none has.');
  const next = gauge('next_poll_timestamp_seconds', 'When the next poll is due; 0: not known.');
  return ({ last, nextPollAtMs }) => {
    if (last !== undefined)
      for (const one of outcomes) set(outcome, Number(one === last.outcome), { outcome: one });
    set(at, seconds(last?.atMs));
    set(next, seconds(nextPollAtMs));
  };
}

function policyGauges(gauge: Make, set: Set): Fill {
  const generation = gauge('active_generation', 'The active generation; 0: no policy is active.');
  const since = gauge('active_since_timestamp_seconds', 'When it became active.');
  const confirmed = gauge('confirmed', '1 when every worker proved the active generation.');
  const active = gauge('bundle_serial', 'Active serial of a bundle.', 'bundle', 'channel');
  const offered = gauge('bundle_offered_serial', 'Serial that the server offers.', 'bundle', 'channel');
  const refused = gauge('refused_releases', 'Releases that are remembered as refused.');
  const held = gauge('held_releases', 'Releases that a person keeps out.');
  const paused = gauge('paused', '1 while nothing is activated.');
  return (report) => {
    set(generation, report.generation);
    set(since, seconds(report.activeSinceMs));
    set(confirmed, Number(report.confirmed));
    for (const { bundle, channel, serial, server } of report.bundles) {
      set(active, serial, { bundle, channel });
      set(offered, server?.serial, { bundle, channel });
    }
    set(refused, report.refusals.length);
    set(held, report.holds.length);
    set(paused, Number(report.pause !== undefined));
  };
}

function workerGauges(gauge: Make, set: Set): Fill {
  const workers = gauge('workers', 'Workers of a group by state.', 'group', 'state');
  return (report) => {
    for (const group of new Set(report.workers.map((one) => one.group)))
      for (const state of workerStates) {
        const inState = report.workers.filter((one) => one.group === group && one.state === state);
        set(workers, inState.length, { group, state });
      }
  };
}

function trustGauges(gauge: Make, set: Set): Fill {
  const state = gauge('freshness', 'The state of the metadata is 1, the others 0.', 'state');
  const age = gauge('freshness_seconds', 'Seconds since policy was last proven current.');
  const contact = gauge('last_contact_timestamp_seconds', 'When the server was last reached.');
  const expiry = gauge('trust_expiry_timestamp_seconds', 'When a role of the metadata expires.', 'role');
  const version = gauge('trust_version', 'Version of a role of the metadata.', 'role');
  return ({ freshness, trust, atMs }, nowMs) => {
    for (const one of freshnessStates) set(state, Number(one === freshness.state), { state: one });
    const { ageMs, lastContactMs } = freshness;
    set(age, seconds(ageMs === undefined ? undefined : ageMs + Math.max(0, nowMs - atMs)));
    set(contact, seconds(lastContactMs));
    for (const { role, version: number, expiresAtMs } of trust.slice(0, maxRoles)) {
      set(expiry, seconds(expiresAtMs), { role });
      set(version, number, { role });
    }
  };
}

function seconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : ms / 1000;
}

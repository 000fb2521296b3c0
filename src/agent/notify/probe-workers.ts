// The probes: which generation is really in use. One that names `{worker}` asks each worker, any other asks the group as
// a whole. A no throws; "not now" (75) and a warning (32 to 63) prove nothing and refute nothing; who could not be reached
// is not asked.
import { join } from 'node:path';
import type { HookConfig, ProbeConfig, WorkerGroupConfig } from '../../core/config/config.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { type HookReport, hookError } from '../hooks/hook.js';
import { retryHook, runHook } from '../hooks/run-hook.js';
import { confineOn } from '../hooks/sandbox.js';
import type { Host } from '../state/host.js';
import type { NotifyContext } from './notify-context.js';
import { workerKey } from './worker-ledger.js';

/** Runs a loader or a probe on the generation that workers are moved to: it finds the live policy, behind the swap. */
export function groupHook(
  host: Host,
  { uses }: WorkerGroupConfig,
  hook: HookConfig,
  { target: { path }, staging, signal }: NotifyContext,
): Promise<HookReport> {
  const [onlyBundle] = uses.length === 1 ? uses : [];
  const bundle = onlyBundle === undefined ? undefined : join(path, onlyBundle);
  return runHook({
    hook,
    places: { generation: path, candidate: path, current: path, bundle },
    scratchRoot: staging,
    durable: host.durable,
    confine: { ...confineOn(host), view: { kind: 'live' } },
    signal,
  });
}

/** @throws WritError LOADER_*, PROBE_*, SANDBOX_* where it is no yes; "not now" of a probe is none */
export function requireNoNo(
  role: 'loader' | 'probe',
  group: string,
  report: HookReport,
  asked = group,
): void {
  const { text: output } = report;
  const { reason } = report.verdict;
  const error = hookError(role, report, {
    text: () => `${asked}: ${reason}${output === '' ? '' : `: ${output.trim()}`}`,
    facts: { groups: [group], reason, output },
  });
  if (error !== undefined) throw error;
}

/**
 * Asks each group's probe which generation is really used; one with `{worker}` in it asks each worker.
 * @param notified those that were notified: who could not be reached is not asked
 * @returns names of the groups, and keys of the workers, that the probe saw using this generation
 * @throws WritError PROBE_FAILED (a verdict), PROBE_BROKEN (no verdict)
 */
export async function runProbes(
  host: Host,
  context: NotifyContext,
  notified: readonly WorkerResult[],
): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  for (const { config } of context.groups) {
    if (asksEach(config.probe)) {
      for (const key of await probeEach(host, config, context, notified)) seen.add(key);
    } else if (config.probe !== undefined && hasAnswer(config, notified)) {
      if (await showsIt(host, config, context)) seen.add(config.name);
    }
  }
  return seen;
}

/**
 * Exit 0 alone means this generation. A worker may take a moment to use what it was notified of: its no is asked again too,
 * and "not now". @throws WritError PROBE_FAILED, PROBE_BROKEN for a no, and where there is no verdict
 */
async function showsIt(
  host: Host,
  config: WorkerGroupConfig,
  context: NotifyContext,
  worker?: string,
): Promise<boolean> {
  const { probe, name } = config;
  if (probe === undefined) return false;
  const { deadlineMs } = probe;
  const again = ['refused', 'deferred', 'broken'] as const;
  const retries = { clock: host.clock, again, signal: context.signal, deadlineMs };
  const report = await retryHook(probe, retries, (hook) => askProbe(host, config, hook, context, worker));
  requireNoNo('probe', name, report, worker === undefined ? name : workerKey(name, worker));
  return report.verdict.kind === 'ok';
}

/** Where all workers are away, or nobody is there, a no of the probe says that and nothing about the policy. */
function hasAnswer({ name, reset }: WorkerGroupConfig, notified: readonly WorkerResult[]): boolean {
  return reset === undefined || notified.some((one) => one.group === name && one.state !== 'unreachable');
}

/** True for a probe that asks each worker. */
export function asksEach(probe: ProbeConfig | undefined): boolean {
  return probe?.run.some((argument) => argument.includes(workerPlaceholder)) ?? false;
}

const workerPlaceholder = '{worker}';

/** @returns keys of those that it saw using the generation. @throws WritError as runProbes */
export async function probeEach(
  host: Host,
  config: WorkerGroupConfig,
  context: NotifyContext,
  notified: readonly WorkerResult[],
): Promise<string[]> {
  const seen: string[] = [];
  for (const { group, worker, state } of notified) {
    if (group !== config.name || state === 'unreachable') continue;
    if (await showsIt(host, config, context, worker)) seen.push(workerKey(group, worker));
  }
  return seen;
}

/** Asks the probe of a group once; about this worker, where it asks each. */
export function askProbe(
  host: Host,
  config: WorkerGroupConfig,
  probe: HookConfig,
  context: NotifyContext,
  worker = '',
): Promise<HookReport> {
  const named = (text: string): string => text.replaceAll(workerPlaceholder, () => worker);
  const [program, ...args] = probe.run;
  return groupHook(host, config, { ...probe, run: [named(program), ...args.map(named)] }, context);
}

// The probes: which generation is really in use. One that names `{worker}` asks each worker, any other asks the group as
// a whole. A no throws; "not now" (75) and a warning (32 to 63) prove nothing and refute nothing; who could not be reached
// is not asked.
import { join } from 'node:path';
import type { HookConfig, WorkerGroupConfig } from '../../core/config/config.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import type { HookVerdict } from '../../core/cycle/hook-verdict.js';
import { hasStamp, stampedCommand } from '../generations/stamped-command.js';
import { type HookReport, hookError } from '../hooks/hook.js';
import { retryHook, runHook } from '../hooks/run-hook.js';
import { confineOn } from '../hooks/sandbox.js';
import type { Host } from '../state/host.js';
import type { NotifyContext } from './notify-context.js';
import { groupOf, workerKey } from './worker-ledger.js';

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

/** What probes have found, by names of groups and keys of workers. */
export interface Probed {
  /** Seen using this generation. */
  readonly seen: ReadonlySet<string>;
  /** The probe gave no verdict: how it ended. */
  readonly unheard: ReadonlyMap<string, HookVerdict>;
}

/**
 * Asks each group's probe which generation is really used; one with `{worker}` in it asks each worker.
 * @param notified those that were notified: who could not be reached is not asked
 * @throws WritError PROBE_FAILED (a verdict), PROBE_BROKEN (no verdict)
 */
export async function runProbes(
  host: Host,
  context: NotifyContext,
  notified: readonly WorkerResult[],
): Promise<Probed> {
  const seen = new Set<string>();
  const unheard = new Map<string, HookVerdict>();
  for (const { config } of context.groups) {
    for (const worker of questionsOf(config, notified)) {
      const about = worker === undefined ? config.name : workerKey(config.name, worker);
      const verdict = await ask(host, config, context, worker);
      if (verdict?.kind === 'ok') seen.add(about);
      else if (verdict !== undefined) unheard.set(about, verdict);
    }
  }
  return { seen, unheard };
}

/** @returns the workers to ask about, one by one; `undefined` among them stands for the group as a whole */
function questionsOf(
  config: WorkerGroupConfig,
  notified: readonly WorkerResult[],
): readonly (string | undefined)[] {
  if (!asksEach(config.probe)) return hasAnswer(config, notified) ? [undefined] : [];
  const own = notified.filter((one) => one.group === config.name && one.state !== 'unreachable');
  return own.map((one) => one.worker);
}

/**
 * Exit 0 alone means this generation. A worker may take a moment to use what it was notified of: its no is asked again too,
 * and "not now". @throws WritError PROBE_FAILED, PROBE_BROKEN for a refusal, and where there is no verdict
 */
async function ask(
  host: Host,
  config: WorkerGroupConfig,
  context: NotifyContext,
  worker?: string,
): Promise<HookReport['verdict'] | undefined> {
  const { probe, name } = config;
  if (probe === undefined) return undefined;
  const again = ['refused', 'deferred', 'broken', 'unreachable'] as const;
  const retries = { clock: host.clock, again, signal: context.signal, deadlineMs: probe.deadlineMs };
  const report = await retryHook(probe, retries, (hook) => askProbe(host, config, hook, context, worker));
  requireNoNo('probe', name, report, worker === undefined ? name : workerKey(name, worker));
  return report.verdict;
}

/** Where all workers are away, or nobody is there, a no of the probe says that and nothing about the policy. */
function hasAnswer({ name, reset }: WorkerGroupConfig, notified: readonly WorkerResult[]): boolean {
  return reset === undefined || notified.some((one) => one.group === name && one.state !== 'unreachable');
}

/** True for a probe that asks each worker. */
export function asksEach(probe: HookConfig | undefined): boolean {
  return probe?.run.some((argument) => argument.includes(workerPlaceholder)) ?? false;
}

const workerPlaceholder = '{worker}';

/** Asks the probe of a group once for each stamp that would be right, until one is; about this worker, where it asks each. */
export async function askProbe(
  host: Host,
  config: WorkerGroupConfig,
  probe: HookConfig,
  context: NotifyContext,
  worker = '',
): Promise<HookReport> {
  const { generation } = context.target;
  const about = asksEach(probe) ? worker : undefined;
  const [first, ...others] = commandsOf(host, config, { run: probe.run, worker: about, generation });
  if (first === undefined) return noStamp(config);
  const named = (text: string): string => text.replaceAll(workerPlaceholder, () => worker);
  const ask = ([program, ...args]: Question['run']): Promise<HookReport> =>
    groupHook(host, config, { ...probe, run: [named(program), ...args.map(named)] }, context);
  let report = await ask(first);
  for (const other of others) if (report.verdict.kind !== 'ok') report = await ask(other);
  return report;
}

export interface Question {
  readonly run: readonly [string, ...string[]];
  /** The worker that is asked about, where each is; left out: the group. */
  readonly worker?: string | undefined;
  /** Number of the generation that workers are moved to. */
  readonly generation: number;
}

/**
 * The stamp is that of the release that a worker was last to take: one that was rightly not notified of a newer stamp shows
 * the older one.
 * @returns the command for each stamp that is right, the newest first: of a group whose workers were last notified of
 *   different releases anyone may answer. None where a bundle that it names has no release.
 */
export function commandsOf(
  host: Host,
  { name, uses }: WorkerGroupConfig,
  { run, worker, generation }: Question,
): readonly Question['run'][] {
  if (!hasStamp(run)) return [run];
  const { workers } = host.ledger.read();
  const there = Object.entries(workers).filter(([key, { goneAtMs }]) =>
    worker === undefined ? groupOf(key) === name && goneAtMs === undefined : key === workerKey(name, worker),
  );
  const wanted = there.length === 0 ? [generation] : there.map(([, one]) => one.wanted);
  const newestFirst = [...new Set(wanted)].sort((one, other) => other - one);
  const commands = newestFirst.flatMap((one) => {
    const command = stampedCommand(host.paths, run, { generation: one, uses });
    return command === undefined ? [] : [command];
  });
  return [...new Map(commands.map((one) => [JSON.stringify(one), one])).values()];
}

function noStamp({ name }: WorkerGroupConfig): HookReport {
  const reason = `group ${name} uses a bundle without a release: its probe has no serial to check`;
  return { verdict: { kind: 'broken', reason }, text: reason, durationMs: 0 };
}

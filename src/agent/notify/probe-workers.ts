// The probes: which generation is really in use. One that names `{worker}` asks each worker, any other asks the group as
// a whole. A no throws; "not now" (75) and a warning (32 to 63) prove nothing and refute nothing; who could not be reached
// is not asked.
import { join } from 'node:path';
import type { HookConfig, ProbeConfig, WorkerGroupConfig } from '../../core/config/config.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import type { HookVerdict } from '../../core/cycle/hook-verdict.js';
import type { WritError } from '../../core/errors.js';
import { findProcess } from '../../platform/process/processes.js';
import type { Driver } from '../../workers/contract/driver.js';
import { hasStamp, stampedCommand } from '../generations/stamped-command.js';
import { type HookReport, hookError } from '../hooks/hook.js';
import { askInTurns, type ProbeQuestion } from '../hooks/probe-attempts.js';
import { runHook } from '../hooks/run-hook.js';
import { confineOn } from '../hooks/sandbox.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { livenessOf } from './dead-workers.js';
import type { NotifyContext } from './notify-context.js';
import { groupOf, hasAnswered, workerKey } from './worker-ledger.js';

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

/** @throws WritError LOADER_*, SANDBOX_* where it is no yes */
export function requireLoaded(group: string, report: HookReport): void {
  const error = groupHookError('loader', { group, asked: group }, report);
  if (error !== undefined) throw error;
}

/** @returns LOADER_*, PROBE_*, SANDBOX_* where it is no yes; "not now" of a probe is no error */
function groupHookError(
  role: 'loader' | 'probe',
  { group, asked }: { readonly group: string; readonly asked: string },
  report: HookReport,
): WritError | undefined {
  const { text: output } = report;
  const { reason } = report.verdict;
  return hookError(role, report, {
    text: () => `${asked}: ${reason}${output === '' ? '' : `: ${output.trim()}`}`,
    facts: { groups: [group], reason, output },
  });
}

/** What probes have found, by names of groups and keys of workers. */
export interface Probed {
  /** Seen using this generation: when, in epoch milliseconds. */
  readonly seen: ReadonlyMap<string, number>;
  /** The probe gave no verdict: how it ended. */
  readonly unheard: ReadonlyMap<string, HookVerdict>;
}

export interface RunProbesOptions {
  /** Names of groups whose probe gave no verdict before in this move: they are asked once, for waiting is in vain. */
  readonly askedOnce?: ReadonlySet<string>;
  /** Called with the error of each question; left out: the first one is thrown. */
  readonly onError?: (error: WritError, about: string) => void;
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
  { askedOnce, onError = throwIt }: RunProbesOptions = {},
): Promise<Probed> {
  const seen = new Map<string, number>();
  const unheard = new Map<string, HookVerdict>();
  const questions = context.groups.flatMap((group): ProbeQuestion[] => {
    const { config } = group;
    const { probe, name } = config;
    if (probe === undefined) return [];
    return questionsOf(config, notified).map((worker) => {
      const about = worker === undefined ? name : workerKey(name, worker);
      const own = notified.filter((one) => one.group === name && [undefined, one.worker].includes(worker));
      let isStopped = false;
      return {
        probe: askedOnce?.has(name) ? { ...probe, deadlineMs: 0 } : probe,
        ask: async (timeoutMs) => {
          const workers = worker === undefined ? own.map((one) => one.worker) : [worker];
          const asked = { probe: { ...probe, timeoutMs }, workers };
          const report = await askProbe(host, group, asked, context);
          isStopped = report.isStopped === true;
          return report;
        },
        isGone: goneWatch(group, own, { clock: host.clock, isStopped: () => isStopped }),
        onDecided: (report) => {
          const error = groupHookError('probe', { group: name, asked: about }, report);
          if (error !== undefined) onError(error, about);
          else if (report.verdict.kind === 'ok') seen.set(about, host.clock.nowMs());
          else unheard.set(about, report.verdict);
        },
      };
    });
  });
  await askInTurns(questions, { clock: host.clock, signal: context.signal });
  return { seen, unheard };
}

function throwIt(error: WritError): never {
  throw error;
}

/** A supervisor that restarts a worker at once has done so by then. */
const goneMs = 5000;

interface GoneWatch {
  readonly clock: Pick<Host['clock'], 'monotonicMs'>;
  /** Whether the last question met a process that is stopped. */
  readonly isStopped: () => boolean;
}

/** @returns a look that is true once one of the workers that answered has been dead or stopped for a while */
function goneWatch(
  { driver }: WorkerGroup,
  notified: readonly WorkerResult[],
  { clock, isStopped }: GoneWatch,
): () => Promise<boolean> {
  const watched = driver?.liveness === undefined ? [] : notified.filter(hasAnswered);
  const isAnyDead = async (): Promise<boolean> => {
    for (const { worker } of watched)
      if (driver !== undefined && (await livenessOf(driver, worker)) === 'dead') return true;
    return false;
  };
  let sinceMs: number | undefined;
  return async () => {
    if (!isStopped() && !(await isAnyDead())) {
      sinceMs = undefined;
      return false;
    }
    sinceMs ??= clock.monotonicMs();
    return clock.monotonicMs() - sinceMs >= goneMs;
  };
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

/** Where all workers are away, or nobody is there, a no of the probe says that and nothing about the policy. */
function hasAnswer({ name, reset }: WorkerGroupConfig, notified: readonly WorkerResult[]): boolean {
  return reset === undefined || notified.some((one) => one.group === name && one.state !== 'unreachable');
}

/** True for a probe that asks each worker. */
export function asksEach(probe: HookConfig | undefined): boolean {
  return probe?.run.some((argument) => argument.includes(workerPlaceholder)) ?? false;
}

const workerPlaceholder = '{worker}';

/** What is asked, and about which workers: the first one is `{worker}`. */
export interface AskedProbe {
  readonly probe: ProbeConfig;
  readonly workers: readonly string[];
}

/**
 * Asks the probe of a group once for each stamp that would be right, until one is; about the worker, where it asks each.
 * @returns `unreachable` in place of any answer but a right one where the process of a worker is stopped
 */
export async function askProbe(
  host: Host,
  { config, driver }: WorkerGroup,
  { probe, workers }: AskedProbe,
  context: NotifyContext,
): Promise<HookReport> {
  const { generation } = context.target;
  const [worker = ''] = workers;
  const about = asksEach(probe) ? worker : undefined;
  const [first, ...others] = commandsOf(host, config, { run: probe.run, worker: about, generation });
  if (first === undefined) return noStamp(config);
  const named = (text: string): string => text.replaceAll(workerPlaceholder, () => worker);
  const ask = ([program, ...args]: Question['run']): Promise<HookReport> =>
    groupHook(host, config, { ...probe, run: [named(program), ...args.map(named)] }, context);
  let report = await ask(first);
  for (const other of others) if (report.verdict.kind !== 'ok') report = await ask(other);
  if (report.verdict.kind === 'ok') return report;
  const stopped = await findStopped(driver, workers);
  return stopped === undefined ? report : withoutAnswer(report, stopped);
}

/**
 * A process that a person stopped (SIGSTOP, a debugger) reads no policy and answers no question. A probe with a time limit of
 * its own then exits as if the answer were wrong (adr/0058).
 * @returns which worker it is; undefined where none is stopped, as far as the driver sees processes
 */
async function findStopped(
  driver: Driver | undefined,
  workers: readonly string[],
): Promise<string | undefined> {
  for (const worker of workers) {
    const pid = await driver?.pid?.(worker);
    if (pid !== undefined && findProcess(pid)?.stopped === 'yes')
      return `process ${pid} of worker ${worker} is stopped (SIGSTOP, a debugger)`;
  }
  return undefined;
}

function withoutAnswer({ durationMs }: HookReport, reason: string): HookReport {
  return { verdict: { kind: 'unreachable', reason }, text: reason, durationMs, isStopped: true };
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

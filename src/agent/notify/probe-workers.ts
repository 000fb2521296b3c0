// Runs probes, which check the generation that workers really use. A probe with `{worker}` in its command runs for each worker,
// any other once for the group. A failed probe is thrown. A deferral (75) and a warning (32 to 63) neither confirm nor refuse.
// Workers that could not be reached are not probed.
import { join } from 'node:path';
import type { HookConfig, ProbeConfig, WorkerGroupConfig } from '../../core/config/config.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import type { HookVerdict } from '../../core/cycle/hook-verdict.js';
import type { WritError } from '../../core/errors.js';
import { findProcess } from '../../platform/process/processes.js';
import type { Driver } from '../../workers/contract/driver.js';
import { hasStamp, stampedCommand } from '../generations/stamped-command.js';
import { type HookReport, hookError } from '../hooks/hook.js';
import { type ProbeQuestion, runProbeQuestions } from '../hooks/probe-attempts.js';
import { runHook } from '../hooks/run-hook.js';
import { confineOn } from '../hooks/sandbox.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { livenessOf } from './dead-workers.js';
import type { NotifyContext } from './notify-context.js';
import { groupOf, hasAnswered, workerKey } from './worker-ledger.js';

/** Runs a loader or a probe after the swap, on the generation that workers must load; it sees the active policy. */
export function runGroupHook(
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

/** @throws WritError LOADER_*, SANDBOX_* for a failure or a deferral; an unreachable process is no error */
export function throwIfNotLoaded(group: string, report: HookReport): void {
  const error = groupHookError('loader', { group, asked: group }, report);
  if (error !== undefined) throw error;
}

/** @returns LOADER_*, PROBE_*, SANDBOX_* for a failure; undefined for a success, and for a deferral of a probe */
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

/** Results of probes, by group name for a group probe and by worker key for a `{worker}` probe. */
export interface ProbeResults {
  /** Epoch milliseconds when the probe saw this generation in use. */
  readonly seen: ReadonlyMap<string, number>;
  /** How the probe ended, if it gave no verdict. */
  readonly withoutVerdict: ReadonlyMap<string, HookVerdict>;
}

export interface RunProbesOptions {
  /** Groups to probe only once, because their probe gave no verdict earlier in this move and a further wait would not help. */
  readonly probedOnce?: ReadonlySet<string>;
  /** Called with each error and the group name or worker key; absent: the first error is thrown. */
  readonly onError?: (error: WritError, about: string) => void;
}

/**
 * Runs the probe of each group, and a `{worker}` probe for each of its workers.
 * @param notified results of the notification; unreachable workers are not probed
 * @throws WritError PROBE_FAILED (a verdict), PROBE_BROKEN (no verdict)
 */
export async function runProbes(
  host: Host,
  context: NotifyContext,
  notified: readonly WorkerResult[],
  { probedOnce, onError = throwError }: RunProbesOptions = {},
): Promise<ProbeResults> {
  const seen = new Map<string, number>();
  const withoutVerdict = new Map<string, HookVerdict>();
  const questions = context.groups.flatMap((group): ProbeQuestion[] => {
    const { config } = group;
    const { probe, name } = config;
    if (probe === undefined) return [];
    return probeSubjects(config, notified).map((worker) => {
      const about = worker === undefined ? name : workerKey(name, worker);
      const own = notified.filter((one) => one.group === name && [undefined, one.worker].includes(worker));
      let isStopped = false;
      return {
        probe: probedOnce?.has(name) ? { ...probe, deadlineMs: 0 } : probe,
        ask: async (timeoutMs) => {
          const workers = worker === undefined ? own.map((one) => one.worker) : [worker];
          const asked = { probe: { ...probe, timeoutMs }, workers };
          const report = await runGroupProbe(host, group, asked, context);
          isStopped = report.isStopped === true;
          return report;
        },
        isGone: createLostWorkerCheck(group, own, { clock: host.clock, isStopped: () => isStopped }),
        onDecided: (report) => {
          const error = groupHookError('probe', { group: name, asked: about }, report);
          if (error !== undefined) onError(error, about);
          else if (report.verdict.kind === 'ok') seen.set(about, host.clock.nowMs());
          else withoutVerdict.set(about, report.verdict);
        },
      };
    });
  });
  await runProbeQuestions(questions, { clock: host.clock, signal: context.signal });
  return { seen, withoutVerdict };
}

function throwError(error: WritError): never {
  throw error;
}

/** A supervisor that restarts a worker at once has restarted it within this time. */
const lostWorkerMs = 5000;

interface LostWorkerOptions {
  readonly clock: Pick<Host['clock'], 'monotonicMs'>;
  /** @returns true if the last attempt found a stopped process */
  readonly isStopped: () => boolean;
}

/** @returns a check that is true once a worker that accepted has been dead or stopped for `lostWorkerMs` */
function createLostWorkerCheck(
  { driver }: WorkerGroup,
  notified: readonly WorkerResult[],
  { clock, isStopped }: LostWorkerOptions,
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
    return clock.monotonicMs() - sinceMs >= lostWorkerMs;
  };
}

/** @returns the workers to probe, one by one; `undefined` stands for the whole group */
function probeSubjects(
  config: WorkerGroupConfig,
  notified: readonly WorkerResult[],
): readonly (string | undefined)[] {
  if (!isWorkerProbe(config.probe)) return canProbeGroup(config, notified) ? [undefined] : [];
  const own = notified.filter((one) => one.group === config.name && one.state !== 'unreachable');
  return own.map((one) => one.worker);
}

/** Without a reachable worker, a failed probe shows that nothing runs, and nothing about the policy. */
function canProbeGroup({ name, reset }: WorkerGroupConfig, notified: readonly WorkerResult[]): boolean {
  return reset === undefined || notified.some((one) => one.group === name && one.state !== 'unreachable');
}

/** @returns true for a probe with `{worker}` in its command, which runs for each worker */
export function isWorkerProbe(probe: HookConfig | undefined): boolean {
  return probe?.run.some((argument) => argument.includes(workerPlaceholder)) ?? false;
}

const workerPlaceholder = '{worker}';

/** A probe, and the workers that it covers. The first one replaces `{worker}`. */
export interface ProbeRequest {
  readonly probe: ProbeConfig;
  readonly workers: readonly string[];
}

/**
 * Runs a probe once for each acceptable stamp, until it passes.
 * @returns the last report; `unreachable` in place of a failure if the process of a worker is stopped
 */
export async function runGroupProbe(
  host: Host,
  { config, driver }: WorkerGroup,
  { probe, workers }: ProbeRequest,
  context: NotifyContext,
): Promise<HookReport> {
  const { generation } = context.target;
  const [worker = ''] = workers;
  const about = isWorkerProbe(probe) ? worker : undefined;
  const [first, ...others] = probeCommands(host, config, { run: probe.run, worker: about, generation });
  if (first === undefined) return missingStampReport(config);
  const named = (text: string): string => text.replaceAll(workerPlaceholder, () => worker);
  const ask = ([program, ...args]: ProbeCommandOptions['run']): Promise<HookReport> =>
    runGroupHook(host, config, { ...probe, run: [named(program), ...args.map(named)] }, context);
  let report = await ask(first);
  for (const other of others) if (report.verdict.kind !== 'ok') report = await ask(other);
  if (report.verdict.kind === 'ok') return report;
  const stopped = await findStoppedProcess(driver, workers);
  return stopped === undefined ? report : withoutAnswer(report, stopped);
}

/**
 * Finds a worker with a stopped process (SIGSTOP, a debugger). It cannot answer, so a probe with a time limit of its own
 * exits as if the answer were wrong (adr/0058).
 * @returns a text that names the worker; undefined if none is stopped, or if the driver cannot see processes
 */
async function findStoppedProcess(
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

export interface ProbeCommandOptions {
  readonly run: readonly [string, ...string[]];
  /** The worker, for a `{worker}` probe; absent: the group. */
  readonly worker?: string | undefined;
  /** Number of the generation that workers must load. */
  readonly generation: number;
}

/**
 * Builds the probe commands with the stamps of the releases that the workers must use. A worker that no move notified of a
 * newer stamp correctly shows the older one.
 * @returns one command for each acceptable stamp, newest first: several if the workers of a group must use different
 *   releases, because any of them may answer. Empty if a bundle in the command has no release
 */
export function probeCommands(
  host: Host,
  { name, uses }: WorkerGroupConfig,
  { run, worker, generation }: ProbeCommandOptions,
): readonly ProbeCommandOptions['run'][] {
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

function missingStampReport({ name }: WorkerGroupConfig): HookReport {
  const reason = `group ${name} uses a bundle without a release: its probe has no serial to check`;
  return { verdict: { kind: 'broken', reason }, text: reason, durationMs: 0 };
}

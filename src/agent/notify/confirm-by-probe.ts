// Probes outside a move: before a notification, because workers may already use the generation, and after it, when other
// workers of the group may have answered the probe. Only a passed probe confirms a worker. Writes nothing.
import type { Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, type WritError } from '../../core/errors.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { NotifyContext } from './notify-context.js';
import { applyProbeResults } from './notify-steps.js';
import { isWorkerProbe, type ProbeResults, runGroupProbe, runProbes } from './probe-workers.js';
import { groupOf, workerKey, workerOf } from './worker-ledger.js';

export interface NotifyReport {
  readonly results: readonly WorkerResult[];
  readonly problems: readonly Problem[];
  /** The first refusal. */
  readonly refusal?: WritError | undefined;
}

/** @returns the errors as problems, and the first one that is a refusal */
export function problemsOf(errors: readonly WritError[]): Pick<NotifyReport, 'problems' | 'refusal'> {
  return { problems: errors.map(problemOf), refusal: errors.find(isRefusal) };
}

function isRefusal({ kind, code }: WritError): boolean {
  return kind === 'rolled-back' || code === 'SILENT_REFUSAL';
}

/**
 * Probes the workers of the context before they are notified, so that workers that already use the generation are not.
 * @returns results of the confirmed workers only
 */
export async function probeBeforeNotify(host: Host, context: NotifyContext): Promise<WorkerResult[]> {
  const shown: WorkerResult[] = [];
  for (const group of context.groups) {
    const { config } = group;
    if (config.probe === undefined) continue;
    const own = [...(context.only ?? [])].filter((key) => groupOf(key) === config.name);
    for (const asked of isWorkerProbe(config.probe) ? own.map((key) => [key]) : [own]) {
      const workers = asked.map(workerOf);
      const report = await runGroupProbe(host, group, { probe: config.probe, workers }, context);
      if (report.verdict.kind === 'ok')
        shown.push(...asked.map((key) => confirmedByProbe(host, key, context)));
    }
  }
  return shown;
}

function confirmedByProbe(host: Host, key: string, { target }: NotifyContext): WorkerResult {
  const process = host.ledger.read().workers[key]?.process;
  return {
    group: groupOf(key),
    worker: workerOf(key),
    state: 'confirmed',
    generation: target.generation,
    text: 'its probe shows the generation; no notification was needed',
    atMs: host.clock.nowMs(),
    ...(process === undefined ? {} : { process }),
  };
}

/**
 * Probes the notified workers.
 * @returns the results after the probes; `unreachable` for a worker if its probe failed, broke or reached no process
 */
export async function probeAfterNotify(
  host: Host,
  context: NotifyContext,
  results: readonly WorkerResult[],
): Promise<NotifyReport> {
  const seen = new Map<string, number>();
  let found: ProbeResults = { seen, withoutVerdict: new Map() };
  const failed = new Map<string, WritError>();
  const reached = results.filter((one) => one.state !== 'unreachable');
  const groups = context.groups.filter(({ config: { name } }) => reached.some((one) => one.group === name));
  const onError = (error: WritError, about: string): void => {
    for (const { group, worker } of results)
      if ([group, workerKey(group, worker)].includes(about)) failed.set(workerKey(group, worker), error);
  };
  try {
    found = await runProbes(host, { ...context, groups }, results, { onError });
  } catch (error) {
    for (const { config } of groups) onError(toWritError(error), config.name);
  }
  for (const [one, atMs] of found.seen) {
    const group = groups.find(({ config }) => config.name === one);
    const own = reached.filter((result) => result.group === one);
    if (group === undefined || coversGroup(host, group, own)) seen.set(one, atMs);
  }
  const proven = await applyProbeResults(
    context.groups,
    { seen, withoutVerdict: found.withoutVerdict },
    results,
  );
  const left = proven.map((one) => withoutConfirmation(one, failed.get(workerKey(one.group, one.worker))));
  return { results: left, ...problemsOf([...new Set(failed.values())]) };
}

/** @returns true if a passed probe covers all of `notified`: a group probe may be answered by a worker outside it */
function coversGroup(host: Host, { config }: WorkerGroup, notified: readonly WorkerResult[]): boolean {
  if (isWorkerProbe(config.probe)) return true;
  const asked = new Set(notified.map((one) => workerKey(one.group, one.worker)));
  return Object.entries(host.ledger.read().workers).every(
    ([key, { state, goneAtMs }]) =>
      groupOf(key) !== config.name || goneAtMs !== undefined || asked.has(key) || state === 'unreachable',
  );
}

/** @returns the result as `unreachable` if the probe failed, because the worker's own answer does not outweigh its probe */
export function withoutConfirmation(result: WorkerResult, error: WritError | undefined): WorkerResult {
  if (error === undefined || (result.state !== 'notified' && result.state !== 'confirmed')) return result;
  return { ...result, state: 'unreachable', text: `${result.text}; ${error.message}` };
}

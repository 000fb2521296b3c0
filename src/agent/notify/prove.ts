// What probes prove apart from a move: before workers are notified, of whom they may show the wanted generation already, and of
// those that were notified, when others of their group may have proved it before. Only a yes counts: of whom a probe does not
// say it, is pending still. Writes nothing.
import type { Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, type WritError } from '../../core/errors.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { NotifyContext } from './notify-context.js';
import { provenBy } from './notify-steps.js';
import { askProbe, asksEach, type Probed, runProbes } from './probe-workers.js';
import { groupOf, workerKey, workerOf } from './worker-ledger.js';

export interface Notified {
  readonly results: readonly WorkerResult[];
  readonly problems: readonly Problem[];
  /** The first no. */
  readonly refusal?: WritError | undefined;
}

/** @returns the errors as problems, and the first of them that is a worker's no */
export function problemsOf(errors: readonly WritError[]): Pick<Notified, 'problems' | 'refusal'> {
  return { problems: errors.map(problemOf), refusal: errors.find(isRefusal) };
}

function isRefusal({ kind, code }: WritError): boolean {
  return kind === 'rolled-back' || code === 'SILENT_REFUSAL';
}

/**
 * Asks the probes of the groups about the workers of the context before they are notified: nobody is notified in vain.
 * @returns those that they have confirmed
 */
export async function proveFirst(host: Host, context: NotifyContext): Promise<WorkerResult[]> {
  const shown: WorkerResult[] = [];
  for (const group of context.groups) {
    const { config } = group;
    if (config.probe === undefined) continue;
    const own = [...(context.only ?? [])].filter((key) => groupOf(key) === config.name);
    for (const asked of asksEach(config.probe) ? own.map((key) => [key]) : [own]) {
      const workers = asked.map(workerOf);
      const report = await askProbe(host, group, { probe: config.probe, workers }, context);
      if (report.verdict.kind === 'ok') shown.push(...asked.map((key) => shownBy(host, key, context)));
    }
  }
  return shown;
}

function shownBy(host: Host, key: string, { target }: NotifyContext): WorkerResult {
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
 * Asks the probes of the groups about those that were notified.
 * @returns what they proved; `unreachable` of whom a probe refused, or could say nothing
 */
export async function proveNotified(
  host: Host,
  context: NotifyContext,
  results: readonly WorkerResult[],
): Promise<Notified> {
  const seen = new Map<string, number>();
  let found: Probed = { seen, unheard: new Map() };
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
    if (group === undefined || isAboutAll(host, group, own)) seen.set(one, atMs);
  }
  const proven = await provenBy(context.groups, { seen, unheard: found.unheard }, results);
  const left = proven.map((one) => unproven(one, failed.get(workerKey(one.group, one.worker))));
  return { results: left, ...problemsOf([...new Set(failed.values())]) };
}

/** A yes about the group may come from a worker that was not notified now: then it says nothing about those that were. */
function isAboutAll(host: Host, { config }: WorkerGroup, notified: readonly WorkerResult[]): boolean {
  if (asksEach(config.probe)) return true;
  const asked = new Set(notified.map((one) => workerKey(one.group, one.worker)));
  return Object.entries(host.ledger.read().workers).every(
    ([key, { state, goneAtMs }]) =>
      groupOf(key) !== config.name || goneAtMs !== undefined || asked.has(key) || state === 'unreachable',
  );
}

/** What a worker says of itself counts for nothing against its probe. */
export function unproven(result: WorkerResult, error: WritError | undefined): WorkerResult {
  if (error === undefined || (result.state !== 'notified' && result.state !== 'confirmed')) return result;
  return { ...result, state: 'unreachable', text: `${result.text}; ${error.message}` };
}

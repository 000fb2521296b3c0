// The steps load, reset and probe for the groups that a generation concerns. Each verdict binds: what says no
// throws, and the caller puts the previous generation back. Writes nothing but what hooks write themselves.
import { join } from 'node:path';
import type { HookConfig, WorkerGroupConfig } from '../core/config.js';
import type { Problem, WorkerResult } from '../core/cycle-report.js';
import { type ErrorCode, WritError } from '../core/errors.js';
import type { DurableFs } from '../platform/durable-fs.js';
import { problemOf } from './cycle-story.js';
import { workersMissing } from './due-problems.js';
import type { Host } from './host.js';
import { type HookReport, type HookSandbox, runHook } from './run-hook.js';
import { tellGroups, type WorkerGroup, workerKey } from './worker-groups.js';

/** The generation that workers are moved to. */
export interface TellTarget {
  readonly generation: number;
  /** Real path of the generation directory. */
  readonly path: string;
}

export interface TellContext {
  readonly groups: readonly WorkerGroup[];
  readonly target: TellTarget;
  /** The cycle's staging directory, for scratch directories. */
  readonly staging: string;
  readonly durable: DurableFs;
  /** For loaders and probes: they find the live policy, for they run after the swap. */
  readonly confine: Omit<HookSandbox, 'view' | 'places'>;
  readonly signal: AbortSignal;
  /** Only these workers are told (their keys); everybody when it is left out. */
  readonly only?: ReadonlySet<string>;
  /** Names each tell. */
  readonly nextTell: () => string;
}

/**
 * Runs the loader of each group, one after the other: its exit code is the verdict.
 * @returns one line per loader
 * @throws WritError LOADER_FAILED (a verdict), LOADER_BROKEN (no verdict)
 */
export async function runLoaders(context: TellContext): Promise<string[]> {
  const lines: string[] = [];
  for (const { config } of context.groups) {
    if (config.load === undefined) continue;
    const report = await groupHook(config, config.load, context);
    lines.push(`${config.name}: ${report.verdict.kind}`);
    requireVerdict(config.name, report, { refused: 'LOADER_FAILED', broken: 'LOADER_BROKEN' });
  }
  return lines;
}

function groupHook(group: WorkerGroupConfig, hook: HookConfig, context: TellContext): Promise<HookReport> {
  const onlyBundle = group.uses.length === 1 ? group.uses[0] : undefined;
  const { path } = context.target;
  const bundle = onlyBundle === undefined ? {} : { bundle: join(path, onlyBundle) };
  return runHook({
    hook,
    places: { generation: path, candidate: path, current: path, ...bundle },
    scratchRoot: context.staging,
    durable: context.durable,
    confine: { ...context.confine, view: { kind: 'live' } },
    signal: context.signal,
  });
}

function requireVerdict(
  group: string,
  report: HookReport,
  codes: { refused: ErrorCode; broken: ErrorCode },
): void {
  const { kind, reason } = report.verdict;
  if (kind === 'ok' || kind === 'warned') return;
  const code = kind === 'refused' ? codes.refused : (report.code ?? codes.broken);
  throw new WritError(code, `${group}: ${reason}${report.text === '' ? '' : `: ${report.text.trim()}`}`, {
    facts: { groups: [group], reason, output: report.text },
    ...(report.hint === undefined ? {} : { hint: report.hint }),
  });
}

export interface ResetReport {
  readonly results: readonly WorkerResult[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
}

/**
 * Tells every worker of the groups and judges the answers.
 * @throws WritError WORKER_REFUSED naming each worker that said no; `facts.results` has every answer
 */
export async function resetWorkers(host: Host, context: TellContext): Promise<ResetReport> {
  const { target, signal, only, nextTell } = context;
  const tellings = await tellGroups(context.groups, {
    target,
    nextTell,
    clock: host.clock,
    signal,
    ...(only === undefined ? {} : { only }),
  });
  const results = tellings.flatMap((one) => one.results);
  const refused = results.filter((one) => one.state === 'refused');
  if (refused.length > 0) {
    const names = refused.map((one) => `${workerKey(one.group, one.worker)}: ${one.text}`);
    throw new WritError('WORKER_REFUSED', names.join('; '), {
      facts: { groups: [...new Set(refused.map((one) => one.group))], refused: names, results },
    });
  }
  const problems = results.filter((one) => one.state === 'unreachable').map(unreachable);
  const warnings: Problem[] = [];
  for (const { group, members, unlisted } of tellings) {
    const { name, reset } = group.config;
    if (unlisted !== undefined) {
      problems.push(problemOf(unlisted));
      continue;
    }
    if (reset === undefined || members.length >= Math.max(reset.min, 1)) continue;
    const problem = problemOf(workersMissing(name, { expected: reset.min, actual: members.length }));
    (members.length < reset.min ? problems : warnings).push(problem);
  }
  return { results, problems, warnings };
}

function unreachable(one: WorkerResult): Problem {
  const name = workerKey(one.group, one.worker);
  return problemOf(
    new WritError('WORKER_UNREACHABLE', `${name}: ${one.text}`, {
      facts: { group: one.group, worker: one.worker, generation: one.generation },
    }),
  );
}

/**
 * Asks each group's probe which generation is really used.
 * @returns names of the groups whose probe saw this generation
 * @throws WritError PROBE_FAILED (a verdict), PROBE_BROKEN (no verdict)
 */
export async function runProbes(host: Host, context: TellContext): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  for (const { config } of context.groups) {
    if (config.probe === undefined) continue;
    const report = await probeWithRetries(host, config, context);
    requireVerdict(config.name, report, { refused: 'PROBE_FAILED', broken: 'PROBE_BROKEN' });
    seen.add(config.name);
  }
  return seen;
}

const probeRetryMs = 500;

async function probeWithRetries(
  host: Host,
  config: WorkerGroupConfig,
  context: TellContext,
): Promise<HookReport> {
  let report = await askProbe(config, context);
  for (let tries = 0; tries < (config.probe?.retry ?? 0) && report.verdict.kind !== 'ok'; tries++) {
    await host.clock.sleep(probeRetryMs, context.signal);
    report = await askProbe(config, context);
  }
  return report;
}

/** Asks the probe of a group once. */
export async function askProbe(config: WorkerGroupConfig, context: TellContext): Promise<HookReport> {
  const { probe } = config;
  if (probe === undefined) throw new WritError('INTERNAL', `group ${config.name} has no probe`);
  return groupHook(config, probe, context);
}

/**
 * What the answers prove. A probe that saw the generation confirms the workers of its group that were told.
 * @returns the results, and a problem for each group with `confirm: required` that nobody confirmed
 */
export function judgeProof(
  groups: readonly WorkerGroup[],
  results: readonly WorkerResult[],
  probed: ReadonlySet<string>,
): { results: WorkerResult[]; problems: Problem[]; confirmed: boolean } {
  const proven = results.map((one): WorkerResult => {
    return one.state === 'told' && probed.has(one.group) ? { ...one, state: 'confirmed' } : one;
  });
  const unproven = proven.filter((one) => one.state === 'told');
  const problems = groups
    .filter(
      ({ config }) => config.confirm === 'required' && unproven.some((one) => one.group === config.name),
    )
    .map(({ config }) => {
      const text = `group ${config.name}: workers were told, none proved that it uses the generation`;
      return problemOf(new WritError('WORKER_UNCONFIRMED', text, { facts: { group: config.name } }));
    });
  return { results: proven, problems, confirmed: proven.every((one) => one.state === 'confirmed') };
}

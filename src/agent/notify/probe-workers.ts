// The probes: which generation is really in use. One that names `{worker}` asks each worker, any other asks the group as
// a whole. A no throws; "not now" (75) and a warning (32 to 63) prove nothing and refute nothing; who could not be reached
// is not asked.
import type { HookConfig, ProbeConfig, WorkerGroupConfig } from '../../core/config/config.js';
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import { WritError } from '../../core/errors.js';
import type { HookReport } from '../hooks/hook.js';
import { retryHook } from '../hooks/hook-retries.js';
import type { Host, WorkerGroup } from '../state/host.js';
import { groupHook, requireVerdict } from './group-hook.js';
import type { TellContext } from './notify-context.js';
import { readMembers, workerKey } from './worker-groups.js';

/**
 * Asks each group's probe which generation is really used; one with `{worker}` in it asks each worker.
 * @param told those that answered, where that is known: who could not be reached is not asked
 * @returns names of the groups, and keys of the workers, that the probe saw using this generation
 * @throws WritError PROBE_FAILED (a verdict), PROBE_BROKEN (no verdict)
 */
export async function runProbes(
  host: Host,
  context: TellContext,
  told?: readonly WorkerResult[],
): Promise<ReadonlySet<string>> {
  const seen = new Set<string>();
  for (const group of context.groups) {
    const { config } = group;
    if (config.probe === undefined) continue;
    if (asksEach(config.probe)) {
      const own = told ?? (await listed(group, context));
      for (const key of await probeEach(host, config, { ...context, told: own })) seen.add(key);
      continue;
    }
    if (told !== undefined && !hasAnswer(config, told)) continue;
    const report = await askWithRetries(host, config.probe, context, (probe) =>
      groupHook(config, probe, context),
    );
    if (showsIt(config.name, report)) seen.add(config.name);
  }
  return seen;
}

/** Exit 0 alone means this generation. @throws WritError PROBE_FAILED, PROBE_BROKEN for a no, and where there is no verdict */
function showsIt(group: string, report: HookReport, asked = group): boolean {
  const { kind } = report.verdict;
  if (kind === 'deferred') return false;
  requireVerdict(group, report, { refused: 'PROBE_FAILED', broken: 'PROBE_BROKEN', asked });
  return kind === 'ok';
}

/** Where all workers are away, or nobody is there, a no of the probe says that and nothing about the policy. */
function hasAnswer({ name, reset }: WorkerGroupConfig, told: readonly WorkerResult[]): boolean {
  return reset === undefined || told.some((one) => one.group === name && one.state !== 'unreachable');
}

type Named = Pick<WorkerResult, 'group' | 'worker'>;

async function listed(group: WorkerGroup, { only }: TellContext): Promise<Named[]> {
  const members = await readMembers(group);
  if (members instanceof WritError) return [];
  const named = members.map(({ worker }) => ({ group: group.config.name, worker }));
  return named.filter((one) => only?.has(workerKey(one.group, one.worker)) ?? true);
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
  context: TellContext & { readonly told: readonly (Named & { readonly state?: WorkerResult['state'] })[] },
): Promise<string[]> {
  const seen: string[] = [];
  for (const { group, worker, state } of context.told) {
    if (group !== config.name || state === 'unreachable' || config.probe === undefined) continue;
    const report = await askWithRetries(host, config.probe, context, (probe) =>
      groupHook(config, { ...probe, run: naming(probe.run, worker) }, context),
    );
    const key = workerKey(group, worker);
    if (showsIt(config.name, report, key)) seen.push(key);
  }
  return seen;
}

function naming([program, ...args]: HookConfig['run'], worker: string): [string, ...string[]] {
  const named = (text: string): string => text.replaceAll(workerPlaceholder, () => worker);
  return [named(program), ...args.map(named)];
}

/** A worker may take a moment to use what it was told of: its no is asked again too, and "not now". */
function askWithRetries(
  { clock }: Host,
  probe: ProbeConfig,
  { signal }: TellContext,
  ask: (probe: HookConfig) => Promise<HookReport>,
): Promise<HookReport> {
  const { deadlineMs } = probe;
  const again = ['refused', 'deferred', 'broken'] as const;
  return retryHook(probe, { clock, again, signal, ...(deadlineMs === undefined ? {} : { deadlineMs }) }, ask);
}

/** Asks the probe of a group once; about this worker, where it asks each. */
export async function askProbe(
  config: WorkerGroupConfig,
  context: TellContext,
  worker = '',
): Promise<HookReport> {
  const { probe } = config;
  if (probe === undefined) throw new WritError('INTERNAL', `group ${config.name} has no probe`);
  return groupHook(config, { ...probe, run: naming(probe.run, worker) }, context);
}

// The canaries of worker groups on one candidate: before the swap, each group that the candidate concerns is asked
// whether it could live with it. Says per group what stands against it; which bundle that falls on is the step's.
import type { CanaryConfig, WorkerGroupConfig } from '../../core/config/config.js';
import type { HookVerdictKind } from '../../core/cycle/hook-verdict.js';
import { type ErrorCode, WritError } from '../../core/errors.js';
import { confinedTo, type HookReport } from '../hooks/hook.js';
import { retryHook, withoutVerdict } from '../hooks/hook-retries.js';
import { runHook } from '../hooks/run-hook.js';
import type { CandidateGround } from './candidate-context.js';
import { runStartedCanary } from './started-canary.js';

export interface CanaryReport extends HookReport {
  readonly group: string;
}

export interface CanaryOptions extends CandidateGround {
  /** Groups that the candidate concerns; those without a canary are passed over. */
  readonly groups: readonly WorkerGroupConfig[];
  /** Real path of each bundle's tree in it. */
  readonly treePaths: ReadonlyMap<string, string>;
}

export interface CanaryResult {
  readonly reports: readonly CanaryReport[];
  /** By group: CANARY_FAILED, CANARY_BROKEN, CANARY_DEFERRED, SANDBOX_MISSING, SANDBOX_BROKEN. */
  readonly problems: ReadonlyMap<string, WritError>;
}

/**
 * Runs all of them, also after a no: whoever mends a policy wants every mistake at once.
 * @throws WritError INTERRUPTED when the signal aborts: a canary that we ended has said nothing
 */
export async function runCanaries(options: CanaryOptions): Promise<CanaryResult> {
  const reports: CanaryReport[] = [];
  const problems = new Map<string, WritError>();
  for (const group of options.groups) {
    if (group.canary === undefined) continue;
    const report = { group: group.name, ...(await runCanary(group.canary, group, options)) };
    if (options.signal?.aborted) throw new WritError('INTERRUPTED', 'the canaries were interrupted');
    const { verdict, durationMs } = report;
    options.log.info({ group: group.name, verdict, durationMs }, 'canary');
    reports.push(report);
    const problem = problemWith(report);
    if (problem !== undefined) problems.set(group.name, problem);
  }
  return { reports, problems };
}

function runCanary(
  canary: CanaryConfig,
  group: WorkerGroupConfig,
  options: CanaryOptions,
): Promise<Omit<CanaryReport, 'group'>> {
  const { candidatePath, treePaths, currentPath, scratchRoot, durable, clock, signal, confine } = options;
  const [onlyBundle = '', ...others] = group.uses;
  const bundle = others.length === 0 ? treePaths.get(onlyBundle) : undefined;
  const hookOptions = {
    places: {
      generation: candidatePath,
      candidate: candidatePath,
      ...(currentPath === undefined ? {} : { current: currentPath }),
      ...(bundle === undefined ? {} : { bundle }),
    },
    ...confinedTo(confine, others.length === 0 ? onlyBundle : undefined),
    scratchRoot,
    durable,
    ...(signal === undefined ? {} : { signal }),
  };
  const retries = { clock, again: withoutVerdict, ...(signal === undefined ? {} : { signal }) };
  if (canary.kind === 'run')
    return retryHook(canary.hook, retries, (hook) => runHook({ ...hookOptions, hook }));
  return retryHook(canary.start, retries, (start) =>
    runStartedCanary({ ...canary, start }, { ...hookOptions, clock }),
  );
}

const codes: Readonly<
  Record<Exclude<HookVerdictKind, 'ok' | 'warned'>, readonly [code: ErrorCode, says: string]>
> = {
  refused: ['CANARY_FAILED', 'refuses the candidate'],
  broken: ['CANARY_BROKEN', 'gave no verdict'],
  deferred: ['CANARY_DEFERRED', 'says "not now"'],
};

/** Of a canary's output, in an error; the report has more. */
const maxTextInError = 2000;

function problemWith({ group, verdict, text, code: ours, hint }: CanaryReport): WritError | undefined {
  const { kind, reason } = verdict;
  if (kind === 'ok' || kind === 'warned') return undefined;
  const [code, says] = codes[kind];
  return new WritError(ours ?? code, `${group}: the canary ${says} (${reason})`, {
    facts: { group, reason, output: text.slice(0, maxTextInError) },
    ...(hint === undefined ? {} : { hint }),
  });
}

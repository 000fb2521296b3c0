// The canaries of worker groups on one candidate: before the swap, each group that the candidate concerns is asked
// whether it could live with it. Says per group what stands against it; which bundle that falls on is the step's.

import type { CanaryConfig, WorkerGroupConfig } from '../../core/config/config.js';
import { WritError } from '../../core/errors.js';
import { bothEndsOfText } from '../../core/text/both-ends.js';
import { type HookReport, hookError } from '../hooks/hook.js';
import { retryHook, runHook } from '../hooks/run-hook.js';
import { type CandidateContext, candidateHook, maxTextInError } from './candidate-context.js';
import { runStartedCanary } from './started-canary.js';

export interface CanaryReport extends HookReport {
  readonly group: string;
}

export interface CanaryOptions extends CandidateContext {
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
 * Runs all of them, also after a refusal: whoever repairs a policy wants every mistake at once.
 * @throws WritError INTERRUPTED when the signal aborts: a canary that we ended has said nothing
 */
export async function runCanaries(options: CanaryOptions): Promise<CanaryResult> {
  const reports: CanaryReport[] = [];
  const problems = new Map<string, WritError>();
  for (const { name: group, uses, canary } of options.groups) {
    if (canary === undefined) continue;
    const report = { group, ...(await runCanary(canary, uses, options)) };
    if (options.signal?.aborted) throw new WritError('INTERRUPTED', 'the canaries were interrupted');
    const { verdict, text, durationMs } = report;
    options.log.info({ group, verdict, durationMs }, 'canary');
    reports.push(report);
    const problem = hookError('canary', report, {
      text: (says) => `${group}: the canary ${says} (${verdict.reason})`,
      facts: { group, reason: verdict.reason, output: bothEndsOfText(text, maxTextInError) },
    });
    if (problem !== undefined) problems.set(group, problem);
  }
  return { reports, problems };
}

function runCanary(
  canary: CanaryConfig,
  uses: readonly string[],
  options: CanaryOptions,
): Promise<HookReport> {
  const name = uses.length === 1 ? uses[0] : undefined;
  const given = candidateHook(options, { name, treePath: options.treePaths.get(name ?? '') });
  if (canary.kind === 'run') return retryHook(canary.hook, options, (hook) => runHook({ ...given, hook }));
  return retryHook(canary.start, options, (start) =>
    runStartedCanary({ ...canary, start }, { ...given, clock: options.clock }),
  );
}

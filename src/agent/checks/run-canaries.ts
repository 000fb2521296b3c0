// Runs the canaries of the affected worker groups on a candidate, before the swap. Returns the problem of each group; the step
// decides which bundle it counts for.

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
  /** The affected groups; those without a canary are skipped. */
  readonly groups: readonly WorkerGroupConfig[];
  /** By bundle: real path of its tree in the candidate. */
  readonly treePaths: ReadonlyMap<string, string>;
}

export interface CanaryResult {
  readonly reports: readonly CanaryReport[];
  /** By group: CANARY_FAILED, CANARY_BROKEN, CANARY_DEFERRED, SANDBOX_MISSING, SANDBOX_BROKEN. */
  readonly problems: ReadonlyMap<string, WritError>;
}

/**
 * Runs all canaries, also after a refusal, so that one attempt reports every mistake.
 * @throws WritError INTERRUPTED when the signal aborts, because an aborted canary has no verdict
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
      text: (outcome) => `${group}: the canary ${outcome} (${verdict.reason})`,
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

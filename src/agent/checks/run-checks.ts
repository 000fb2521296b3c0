// Runs every check of every bundle on the candidate, one after the other, and returns the worst problem of each bundle. Unchanged
// bundles are checked too, because the candidate is judged as a whole. If a check runs without a sandbox, this also verifies
// that the candidate did not change meanwhile.

import type { BundleConfig } from '../../core/config/config.js';
import type { HookVerdictKind } from '../../core/cycle/hook-verdict.js';
import { WritError } from '../../core/errors.js';
import type { Manifest } from '../../core/release/manifest.js';
import { bothEndsOfText } from '../../core/text/both-ends.js';
import { type HookReport, hookError } from '../hooks/hook.js';
import { retryHook, runHook } from '../hooks/run-hook.js';
import { type CandidateContext, candidateHook, maxTextInError } from './candidate-context.js';
import { type ChangeBase, runChangeCheck } from './change-check.js';
import { type Exceeded, runParseCheck } from './parse-check.js';
import { watchCandidate } from './watch-candidate.js';

export interface CheckSubject {
  readonly config: BundleConfig;
  readonly treePath: string;
  readonly manifest: Manifest;
  /** False for a tree that the active generation also has. */
  readonly changed: boolean;
  /** The base for a change check. */
  readonly base: ChangeBase;
}

/** The report of one check on one bundle. The text of a parse check has all mistakes. */
export interface BundleCheckReport extends HookReport {
  readonly name: string;
  readonly bundle: string;
  /** The exceeded bound, if that is the reason for the refusal. */
  readonly exceeded?: Exceeded;
  /** For a change check: the first exceeded bound. */
  readonly facts?: { readonly expected: string; readonly actual: string };
}

export interface CheckResult {
  readonly reports: readonly BundleCheckReport[];
  /**
   * The worst problem of each bundle that has one: CHECK_FAILED, CHECK_BROKEN, CHECK_DEFERRED, CANDIDATE_CHANGED,
   * SANDBOX_MISSING, SANDBOX_BROKEN.
   */
  readonly problems: ReadonlyMap<string, WritError>;
}

export interface RunChecksOptions extends CandidateContext {
  readonly bundles: readonly CheckSubject[];
}

/**
 * Runs all checks, also after a refusal, so that one attempt reports every mistake.
 * @throws WritError INTERRUPTED when the signal aborts
 */
export async function runChecks(options: RunChecksOptions): Promise<CheckResult> {
  if (options.bundles.every(({ config }) => config.checks.length === 0)) {
    return { reports: [], problems: new Map() };
  }
  const changes = await watchCandidate(options);
  const reports: BundleCheckReport[] = [];
  const problems = new Map<string, WritError>();
  for (const subject of options.bundles) {
    const own = await checkBundle(subject, options);
    reports.push(...own);
    const problem = worstProblem(subject, own);
    if (problem !== undefined) problems.set(subject.config.name, problem);
  }
  for (const [bundle, problem] of await changes()) problems.set(bundle, problem);
  return { reports, problems };
}

async function checkBundle(subject: CheckSubject, options: RunChecksOptions): Promise<BundleCheckReport[]> {
  const reports: BundleCheckReport[] = [];
  const bundle = subject.config.name;
  for (const check of subject.config.checks) {
    const startedMs = options.clock.monotonicMs();
    const ended = await runCheck(check, subject, options);
    // An aborted check has no verdict.
    if (options.signal?.aborted) throw new WritError('INTERRUPTED', 'the checks were interrupted');
    const durationMs = options.clock.monotonicMs() - startedMs;
    options.log.info({ check: check.name, bundle, verdict: ended.verdict, durationMs }, 'check');
    reports.push({ ...ended, name: check.name, bundle, durationMs });
  }
  return reports;
}

async function runCheck(
  check: BundleConfig['checks'][number],
  { config, treePath, manifest, base }: CheckSubject,
  options: RunChecksOptions,
): Promise<Omit<BundleCheckReport, 'name' | 'bundle' | 'durationMs'>> {
  const { clock, signal, candidatePath } = options;
  if (check.kind === 'parse') return runParseCheck({ config: check, treePath, manifest, clock, signal });
  if (check.kind === 'change') return runChangeCheck({ config: check, base, manifest });
  const given = candidateHook(options, { name: config.name, treePath });
  const report = await retryHook(check, options, (hook) => runHook({ ...given, hook }));
  const inside = given.confine?.places;
  const names = [treePath, candidatePath, inside?.bundle, inside?.candidate];
  return { ...report, text: removePaths(report.text, names) };
}

/** Removes temporary paths from the output, because they no longer exist when a person reads it: `block.rpz:10` remains. */
function removePaths(text: string, places: readonly (string | undefined)[]): string {
  return places
    .filter((place) => place !== undefined)
    .reduce((short, place) => short.replaceAll(`${place}/`, ''), text);
}

/** Worst first: a refusal is a verdict on authentic bytes, so it outweighs a broken check and a deferral. */
const severity: readonly HookVerdictKind[] = ['refused', 'broken', 'deferred'];

function worstProblem(
  { config, changed }: CheckSubject,
  reports: readonly BundleCheckReport[],
): WritError | undefined {
  const [worst] = severity.flatMap((kind) => reports.filter(({ verdict }) => verdict.kind === kind));
  if (worst === undefined) return undefined;
  const { name: check, text: output, exceeded, facts } = worst;
  const { reason } = worst.verdict;
  return hookError('check', worst, {
    text: (outcome) => {
      const message = `${config.name}: the check "${check}" ${outcome} (${reason})`;
      return exceeded === undefined ? message : `${message}: ${exceeded.file}`;
    },
    facts: {
      ...{ bundle: config.name, check, reason, changed, ...exceeded, ...facts },
      output: bothEndsOfText(output, maxTextInError),
    },
  });
}

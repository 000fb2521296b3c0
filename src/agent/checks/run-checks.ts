// Runs every check of every bundle on the candidate generation, one after the other, and says per bundle what
// stands against it. A bundle whose tree did not change is checked too: the candidate is judged as a whole.
// Where a check runs without a sandbox, the candidate is compared with itself afterwards.

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
  /** False for a tree that the active generation has too. */
  readonly changed: boolean;
  /** What a check of the change compares it with. */
  readonly base: ChangeBase;
}

/** Of a check of files, every mistake as its text. */
export interface CheckReport extends HookReport {
  readonly name: string;
  readonly bundle: string;
  /** Where a bound of the check was what refused. */
  readonly exceeded?: Exceeded;
  /** The bound of a check of the change that was exceeded first. */
  readonly facts?: { readonly expected: string; readonly actual: string };
}

export interface CheckResult {
  readonly reports: readonly CheckReport[];
  /**
   * The worst problem of each bundle that has one: CHECK_FAILED, CHECK_BROKEN, CHECK_DEFERRED, CANDIDATE_CHANGED,
   * SANDBOX_MISSING, SANDBOX_BROKEN.
   */
  readonly problems: ReadonlyMap<string, WritError>;
}

export interface CheckOptions extends CandidateContext {
  readonly bundles: readonly CheckSubject[];
}

/**
 * Runs all checks, also after a refusal: whoever repairs a policy wants every mistake at once.
 * @throws WritError INTERRUPTED when the signal aborts
 */
export async function runChecks(options: CheckOptions): Promise<CheckResult> {
  if (options.bundles.every(({ config }) => config.checks.length === 0)) {
    return { reports: [], problems: new Map() };
  }
  const changes = await watchCandidate(options);
  const reports: CheckReport[] = [];
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

async function checkBundle(subject: CheckSubject, options: CheckOptions): Promise<CheckReport[]> {
  const reports: CheckReport[] = [];
  const bundle = subject.config.name;
  for (const check of subject.config.checks) {
    const startedMs = options.clock.monotonicMs();
    const ended = await runCheck(check, subject, options);
    // A check that we ended ourselves has said nothing about the candidate.
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
  options: CheckOptions,
): Promise<Omit<CheckReport, 'name' | 'bundle' | 'durationMs'>> {
  const { clock, signal, candidatePath } = options;
  if (check.kind === 'parse') return runParseCheck({ config: check, treePath, manifest, clock, signal });
  if (check.kind === 'change') return runChangeCheck({ config: check, base, manifest });
  const given = candidateHook(options, { name: config.name, treePath });
  const report = await retryHook(check, options, (hook) => runHook({ ...given, hook }));
  const inside = given.confine?.places;
  const names = [treePath, candidatePath, inside?.bundle, inside?.candidate];
  return { ...report, text: withoutPlaces(report.text, names) };
}

/** These paths mean nothing to people, and are gone when they read them: `block.rpz:10` says it. */
function withoutPlaces(text: string, places: readonly (string | undefined)[]): string {
  return places
    .filter((place) => place !== undefined)
    .reduce((short, place) => short.replaceAll(`${place}/`, ''), text);
}

/** A refusal is a verdict on authentic bytes, whatever else was broken; the worst comes first. */
const severity: readonly HookVerdictKind[] = ['refused', 'broken', 'deferred'];

function worstProblem(
  { config, changed }: CheckSubject,
  reports: readonly CheckReport[],
): WritError | undefined {
  const [worst] = severity.flatMap((kind) => reports.filter(({ verdict }) => verdict.kind === kind));
  if (worst === undefined) return undefined;
  const { name: check, text: output, exceeded, facts } = worst;
  const { reason } = worst.verdict;
  return hookError('check', worst, {
    text: (says) => {
      const said = `${config.name}: the check "${check}" ${says} (${reason})`;
      return exceeded === undefined ? said : `${said}: ${exceeded.file}`;
    },
    facts: {
      ...{ bundle: config.name, check, reason, changed, ...exceeded, ...facts },
      output: bothEndsOfText(output, maxTextInError),
    },
  });
}

// Runs every check of every bundle on the candidate generation, one after the other, and says per bundle what
// stands against it. A bundle whose tree did not change is checked too: the candidate is judged as a whole.
// Where a check runs without a sandbox, the candidate is compared with itself afterwards.
import type { BundleConfig } from '../../core/config/config.js';
import type { HookVerdict, HookVerdictKind } from '../../core/cycle/hook-verdict.js';
import { type ErrorCode, WritError } from '../../core/errors.js';
import type { Manifest } from '../../core/release/manifest.js';
import { confinedTo, type HookReport } from '../hooks/hook.js';
import { retryHook, withoutVerdict } from '../hooks/hook-retries.js';
import { runHook } from '../hooks/run-hook.js';
import type { CandidateGround } from './candidate-context.js';
import { runParseCheck } from './parse-check.js';
import { watchCandidate } from './watch-candidate.js';

export interface CheckSubject {
  readonly config: BundleConfig;
  readonly treePath: string;
  readonly manifest: Manifest;
  /** False for a tree that the active generation has too. */
  readonly changed: boolean;
}

export interface CheckReport {
  readonly name: string;
  readonly bundle: string;
  readonly verdict: HookVerdict;
  /** Bounded; output of both streams, or the mistakes. */
  readonly text: string;
  readonly durationMs: number;
  /** Why there was no verdict, where it was the sandbox. */
  readonly code?: ErrorCode;
  readonly hint?: string;
}

export interface CheckResult {
  readonly reports: readonly CheckReport[];
  /**
   * The worst problem of each bundle that has one: CHECK_FAILED, CHECK_BROKEN, CHECK_DEFERRED, CANDIDATE_CHANGED,
   * SANDBOX_MISSING, SANDBOX_BROKEN.
   */
  readonly problems: ReadonlyMap<string, WritError>;
}

export interface CheckOptions extends CandidateGround {
  readonly bundles: readonly CheckSubject[];
  readonly onReport?: (report: CheckReport) => void;
}

/**
 * Runs all checks, also after a refusal: whoever mends a policy wants every mistake at once.
 * @throws WritError INTERRUPTED when the signal aborts
 */
export async function runChecks(options: CheckOptions): Promise<CheckResult> {
  if (options.bundles.every(({ config }) => config.checks.length === 0)) {
    return { reports: [], problems: new Map() };
  }
  const watch = await watchCandidate(options);
  const reports: CheckReport[] = [];
  const problems = new Map<string, WritError>();
  for (const subject of options.bundles) {
    const own = await checkBundle(subject, options);
    reports.push(...own);
    const problem = worstProblem(subject, own);
    if (problem !== undefined) problems.set(subject.config.name, problem);
  }
  for (const [bundle, problem] of await watch.changes()) problems.set(bundle, problem);
  return { reports, problems };
}

type Check = BundleConfig['checks'][number];

async function checkBundle(subject: CheckSubject, options: CheckOptions): Promise<CheckReport[]> {
  const reports: CheckReport[] = [];
  for (const check of subject.config.checks) {
    const startedMs = options.clock.monotonicMs();
    const { verdict, text, ...more } = await runCheck(check, subject, options);
    if (options.signal?.aborted) throw new WritError('INTERRUPTED', 'the checks were interrupted');
    const durationMs = options.clock.monotonicMs() - startedMs;
    const report = { name: check.name, bundle: subject.config.name, verdict, text, durationMs, ...more };
    options.log.info({ check: report.name, bundle: report.bundle, verdict, durationMs }, 'check');
    options.onReport?.(report);
    reports.push(report);
  }
  return reports;
}

async function runCheck(
  check: Check,
  { config, treePath, manifest }: CheckSubject,
  { candidatePath, currentPath, scratchRoot, durable, clock, signal, confine }: CheckOptions,
): Promise<Omit<CheckReport, 'name' | 'bundle' | 'durationMs'>> {
  const ending = signal === undefined ? {} : { signal };
  if (check.kind === 'parse') return runParseCheck({ config: check, treePath, manifest, clock, ...ending });
  const current = currentPath === undefined ? {} : { current: currentPath };
  const places = { generation: candidatePath, candidate: candidatePath, bundle: treePath, ...current };
  const confined = confinedTo(confine, config.name);
  const options = { places, scratchRoot, durable, ...confined, ...ending };
  const report = await retryHook(check, { clock, again: withoutVerdict, ...ending }, (hook) =>
    runHook({ ...options, hook }),
  );
  const inside = confined.confine?.places;
  const names = [treePath, candidatePath, inside?.bundle, inside?.candidate];
  return withoutDuration({ ...report, text: withoutPlaces(report.text, names) });
}

function withoutDuration({ durationMs: _, ...report }: HookReport): Omit<HookReport, 'durationMs'> {
  return report;
}

/** These paths mean nothing to people, and are gone when they read them: `block.rpz:10` says it. */
function withoutPlaces(text: string, places: readonly (string | undefined)[]): string {
  return places
    .filter((place) => place !== undefined)
    .reduce((short, place) => short.replaceAll(`${place}/`, ''), text);
}

/** A refusal is a verdict on authentic bytes, whatever else was broken; the last of this list is the worst. */
const severity = ['deferred', 'broken', 'refused'] as const satisfies readonly HookVerdictKind[];

const codes: Readonly<Record<(typeof severity)[number], readonly [ErrorCode, string]>> = {
  refused: ['CHECK_FAILED', 'refuses the candidate'],
  broken: ['CHECK_BROKEN', 'gave no verdict'],
  deferred: ['CHECK_DEFERRED', 'says "not now"'],
};

/** Of a check's output, in an error; the report has more. */
const maxTextInError = 2000;

function worstProblem(
  { config, changed }: CheckSubject,
  reports: readonly CheckReport[],
): WritError | undefined {
  const kind = severity.findLast((one) => reports.some(({ verdict }) => verdict.kind === one));
  const report = reports.find(({ verdict }) => verdict.kind === kind);
  if (kind === undefined || report === undefined) return undefined;
  const [code, says] = codes[kind];
  const { name, verdict, text, hint } = report;
  const said = `${config.name}: the check "${name}" ${says} (${verdict.reason})`;
  // Also in the message: who reads "No such file" in the output must not go and look for it.
  return new WritError(report.code ?? code, hint === undefined ? said : `${said}. ${hint}`, {
    facts: {
      bundle: config.name,
      check: name,
      reason: verdict.reason,
      changed,
      output: text.slice(0, maxTextInError),
    },
    ...(hint === undefined ? {} : { hint }),
  });
}

// The end of a cycle: what was found on the way becomes one result with one outcome. Writes no file; the
// outcome is never better than the worst part.
import type { BundleResult, CycleResult, Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { outcomeOf, problemOf } from '../../core/cycle/problem.js';
import { exitCodeOfOutcome, type Outcome, worstOutcome } from '../../core/cycle/sync-machine.js';
import { errorCodes } from '../../core/error-codes.js';
import { exitCodeOfKind, isSystemError, type WritError } from '../../core/errors.js';
import type { Attempt } from '../../core/status/freshness.js';
import { activeGenerationNumber } from '../generations/generations.js';
import type { Host } from '../state/host.js';
import { isProven } from '../state/proven.js';
import type { CycleStory } from './progress.js';

/** Gathered while the cycle runs. */
export interface CycleFindings {
  readonly bundles: Map<string, BundleResult>;
  /** One line a check. */
  readonly checks: string[];
  readonly moves: MoveResult[];
  readonly workers: WorkerResult[];
  readonly problems: Problem[];
  readonly warnings: Problem[];
  /** Active before the cycle. */
  fromGeneration?: number | undefined;
  /** What ended the cycle as a whole. */
  error?: WritError;
  /** How the refresh ended; absent when it was not tried, or we ended it ourselves. */
  refresh?: Attempt;
}

export function emptyFindings(fromGeneration?: number): CycleFindings {
  return {
    bundles: new Map(),
    checks: [],
    moves: [],
    workers: [],
    problems: [],
    warnings: [],
    ...(fromGeneration === undefined ? {} : { fromGeneration }),
  };
}

/** @param type which command's result it is */
export function finishCycle(
  host: Host,
  story: CycleStory,
  findings: CycleFindings,
  type: CycleResult['type'] = 'pull.result',
): CycleResult {
  const outcome = overallOutcome(findings);
  const generation = readGenerationNumber(host);
  const problems = allProblems(findings);
  const { fromGeneration, moves } = findings;
  const last = moves.at(-1);
  return {
    schema: 1,
    type,
    cycle: story.cycle,
    trigger: story.trigger,
    outcome,
    exitCode: exitCodeOf(outcome, problems),
    // As the status says it: a group that this cycle did not concern may not have proved what it uses.
    confirmed: (outcome === 'unchanged' || (last?.confirmed ?? false)) && isProven(host),
    changed: generation !== fromGeneration,
    ...(fromGeneration === undefined ? {} : { fromGeneration }),
    ...(generation === undefined ? {} : { generation }),
    bundles: [...findings.bundles.values()],
    workers: [...(last?.workers ?? []), ...findings.workers],
    problems,
    warnings: [...findings.warnings, ...moves.flatMap((one) => one.warnings)],
    startedAtMs: story.startedAtMs,
    durationMs: story.durationMs(),
  };
}

/** To try again will not help against a wrong configuration or request: scripts tell both apart by the exit code. */
function exitCodeOf(outcome: Outcome, problems: readonly Problem[]): number {
  const [first] = problems;
  const kind = first === undefined ? undefined : errorCodes[first.code].kind;
  const isAsked = kind === 'config' || kind === 'usage';
  return outcome === 'failed' && isAsked ? exitCodeOfKind[kind] : exitCodeOfOutcome[outcome];
}

function overallOutcome(findings: CycleFindings): Outcome {
  const parts: Outcome[] = [...findings.bundles.values()].map((one) => one.outcome);
  parts.push(...findings.moves.map((one) => one.outcome));
  if (findings.problems.length > 0) parts.push('degraded');
  if (findings.error !== undefined) parts.push(outcomeOf(findings.error));
  return worstOutcome(parts);
}

/** Each problem once: a move's refusal is also its bundles' problem. */
function allProblems(findings: CycleFindings): Problem[] {
  const all = [
    ...(findings.error === undefined ? [] : [problemOf(findings.error)]),
    ...[...findings.bundles.values()].flatMap((one) => (one.problem === undefined ? [] : [one.problem])),
    ...findings.moves.flatMap((one) => one.problems),
    ...findings.problems,
  ];
  return all.filter(
    (one, index) =>
      all.findIndex((other) => other.code === one.code && other.message === one.message) === index,
  );
}

function readGenerationNumber(host: Host): number | undefined {
  try {
    return activeGenerationNumber(host.paths);
  } catch (error) {
    // The cycle's own error says what is wrong with the link; the result is still made.
    if (isSystemError(error)) throw error;
    return undefined;
  }
}

export interface MoveResult {
  readonly outcome: Extract<
    Outcome,
    'activated' | 'degraded' | 'rolled-back' | 'deferred' | 'failed' | 'blocked'
  >;
  readonly confirmed: boolean;
  readonly workers: readonly WorkerResult[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Why the previous generation is back. */
  readonly refusal?: WritError;
}

export interface CycleEnd {
  readonly result: CycleResult;
  readonly story: CycleStory;
  /** How the refresh ended; absent where none was tried, or we ended it ourselves. */
  readonly refresh?: Attempt;
  /** The interrupted cycle whose swap a recovery finished or undid. */
  readonly recovers?: string;
}

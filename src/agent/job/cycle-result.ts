// The end of a cycle: the results of its parts become one result with one outcome, which is never better than the worst part.
// Writes no file.
import { existsSync } from 'node:fs';
import type { BundleResult, CycleResult, Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { outcomeOf, problemOf } from '../../core/cycle/problem.js';
import {
  exitCodeOfOutcome,
  isActivation,
  type Outcome,
  unprovenExitCode,
  worstOutcome,
} from '../../core/cycle/sync-machine.js';
import { errorCodes } from '../../core/error-codes.js';
import { type ErrorCode, exitCodeOfKind, isSystemError, type WritError } from '../../core/errors.js';
import type { ReleaseInfo } from '../../core/release/release.js';
import type { RefreshAttempt } from '../../core/status/freshness.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { areWorkersConfirmed } from '../state/confirmed-workers.js';
import type { Host } from '../state/host.js';
import { notificationTarget } from '../state/paths.js';
import type { CycleProgress } from './progress.js';

/** The results of the parts of a job, filled while it runs. */
export interface CycleRecord {
  readonly bundles: Map<string, BundleResult>;
  readonly moves: MoveResult[];
  readonly workers: WorkerResult[];
  readonly problems: Problem[];
  readonly warnings: Problem[];
  /** The generation that was active before the cycle; undefined where none was. */
  fromGeneration?: number | undefined;
  /** The error that ended the cycle as a whole; absent where none did. */
  error?: WritError;
  /** How the refresh ended; absent where none was tried, or Writ itself ended it. */
  refresh?: RefreshAttempt;
  /** By Clock.bootMs: when the last refresh that succeeded ended. */
  refreshedAtBootMs?: number;
}

/**
 * Creates the record of a job that has no results yet. Throws nothing.
 * @param fromGeneration the number of the active generation when the job begins; undefined where none is
 * @returns a new record with an empty map and four empty lists, which the job fills; `error` and `refresh` are absent
 */
export function emptyRecord(fromGeneration?: number): CycleRecord {
  return { bundles: new Map(), moves: [], workers: [], problems: [], warnings: [], fromGeneration };
}

/** Adds the results of bundles; each replaces the earlier result of its bundle. */
export function noteBundles(
  { bundles }: Pick<CycleRecord, 'bundles'>,
  results: readonly BundleResult[],
): void {
  for (const result of results) bundles.set(result.bundle, result);
}

/** @param bundle result of a bundle that the move changed, before the move. @returns its result after the move */
export function bundleMoved(bundle: BundleResult, { outcome, problems }: MoveResult): BundleResult {
  const problem = isActivation(outcome) ? undefined : problems[0];
  return { ...bundle, outcome, ...(problem === undefined ? {} : { problem }) };
}

/** @param fromSerial of the release in use; undefined where there is none. @returns the result of a release before its move */
export function bundleBefore(
  { bundle, channel, serial, revision }: Pick<ReleaseInfo, 'bundle' | 'channel' | 'serial' | 'revision'>,
  fromSerial: number | undefined,
): BundleResult {
  const known = fromSerial === undefined ? {} : { fromSerial };
  return { bundle, channel, outcome: 'unchanged', ...known, toSerial: serial, revision };
}

/**
 * @param type names the command
 * @returns the result: outcome and exit code of all bundles, moves and problems together; confirmed, as the status has it;
 *   changed if another generation is active than at the begin
 */
export function finishCycle(
  host: Host,
  progress: CycleProgress,
  record: CycleRecord,
  type: CycleResult['type'] = 'pull.result',
): CycleResult {
  const outcome = overallOutcome(record);
  // In a directory that vanished there is no link to read: the cycle has not changed what is active.
  const isVanished = record.error?.code === 'STATE_VANISHED';
  const generation = isVanished ? record.fromGeneration : readGenerationNumber(host);
  const problems = allProblems(record);
  const { fromGeneration, moves } = record;
  const last = moves.at(-1);
  return {
    schema: 1,
    type,
    cycle: progress.cycle,
    trigger: progress.trigger,
    outcome,
    exitCode: exitCodeOf(outcome, problems, { isUnproven: isUnproven(host, { fromGeneration, moves }) }),
    // Of all groups, as in the status: a group that the cycle did not affect may be unconfirmed too.
    confirmed: (outcome === 'unchanged' || last !== undefined) && areWorkersConfirmed(host),
    changed: generation !== fromGeneration,
    ...(fromGeneration === undefined ? {} : { fromGeneration }),
    ...(generation === undefined ? {} : { generation }),
    bundles: [...record.bundles.values()],
    workers: [...(last?.workers ?? []), ...record.workers],
    problems,
    warnings: distinct([...record.warnings, ...moves.flatMap((one) => one.warnings)]),
    startedAtMs: progress.startedAtMs,
    durationMs: progress.durationMs(),
  };
}

/** A new try does not help against a wrong configuration or request: scripts recognize both by the exit code. */
function exitCodeOf(
  outcome: Outcome,
  problems: readonly Problem[],
  { isUnproven }: { readonly isUnproven: boolean },
): number {
  const [first] = problems;
  const kind = first === undefined ? undefined : errorCodes[first.code].kind;
  const isAsked = kind === 'config' || kind === 'usage' || kind === 'busy';
  if (outcome === 'activated' && isUnproven) return unprovenExitCode;
  return outcome === 'failed' && isAsked ? exitCodeOfKind[kind] : exitCodeOfOutcome[outcome];
}

/** A worker cannot still use an older policy where the first one is activated, so that an unproved one is not an error there. */
function isUnproven(
  host: Host,
  { fromGeneration, moves }: Pick<CycleRecord, 'fromGeneration' | 'moves'>,
): boolean {
  return (
    fromGeneration !== undefined &&
    !areWorkersConfirmed(host) &&
    hasUnproven(host, moves.at(-1)?.workers ?? [])
  );
}

/** @returns true where a worker was notified and proved nothing, and its group does not accept that */
export function hasUnproven(
  { config }: Pick<Host, 'config'>,
  workers: readonly Pick<WorkerResult, 'group' | 'state'>[],
): boolean {
  const accepting = config.workers.filter((one) => one.confirm === 'accept').map((one) => one.name);
  return workers.some(({ group, state }) => state === 'notified' && !accepting.includes(group));
}

function overallOutcome(record: CycleRecord): Outcome {
  const parts: Outcome[] = [...record.bundles.values()].map((one) => one.outcome);
  parts.push(...record.moves.map((one) => one.outcome));
  if (record.problems.length > 0) parts.push('degraded');
  if (record.error !== undefined) parts.push(outcomeOf(record.error));
  return worstOutcome(parts);
}

/** Each problem once: a move's refusal is also its bundles' problem. */
function allProblems(record: CycleRecord): Problem[] {
  return distinct([
    ...(record.error === undefined ? [] : [problemOf(record.error)]),
    ...[...record.bundles.values()].flatMap((one) => (one.problem === undefined ? [] : [one.problem])),
    ...record.moves.flatMap((one) => one.problems),
    ...record.problems,
  ]);
}

function distinct(problems: readonly Problem[]): Problem[] {
  return problems.filter(
    (one, index) =>
      problems.findIndex((other) => other.code === one.code && other.message === one.message) === index,
  );
}

/** @returns undefined where `current` leads to no generation: then no policy is active, also where the link names one */
function readGenerationNumber({ paths }: Host): number | undefined {
  try {
    const active = activeGenerationNumber(paths);
    return active !== undefined && existsSync(notificationTarget(paths, active).path) ? active : undefined;
  } catch (error) {
    // The error of the cycle itself describes the fault of the link; the result is still made.
    if (isSystemError(error)) throw error;
    return undefined;
  }
}

export interface MoveResult {
  readonly outcome: Extract<
    Outcome,
    'activated' | 'degraded' | 'rolled-back' | 'deferred' | 'failed' | 'blocked'
  >;
  readonly workers: readonly WorkerResult[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Bundles that a refusal of a worker is attributed to; left out without a refusal. */
  readonly blamed?: readonly string[];
}

/** True for a mistake in a request, or one that came too late: the host itself does not have a problem. */
export function isOfOrder({ outcome, problems: [first] }: CycleResult): boolean {
  if (outcome !== 'failed' || first === undefined) return false;
  return first.code === 'GENERATION_CHANGED' || errorCodes[first.code].kind === 'usage';
}

export interface CycleEnd {
  readonly result: CycleResult;
  readonly progress: CycleProgress;
  /** As in CycleRecord. */
  readonly refresh?: RefreshAttempt;
  /** The interrupted cycle whose swap a recovery finished or undid. */
  readonly recovers?: string;
}

/**
 * A delegated role is downloaded when a bundle is selected, so that its refusal is in the result of the bundle.
 * @returns how the refresh of a cycle ended
 */
export function attemptOf({ refresh, bundles }: CycleRecord): RefreshAttempt | undefined {
  return attemptWith(
    refresh,
    [...bundles.values()].map(({ problem }) => problem),
  );
}

/**
 * @returns the refresh with the first metadata refusal among these problems as its error; a refresh with an error stays;
 *   undefined without a refresh
 */
export function attemptWith(
  refresh: RefreshAttempt | undefined,
  problems: readonly (Pick<Problem, 'code' | 'facts'> | undefined)[],
): RefreshAttempt | undefined {
  if (refresh === undefined || refresh.error !== undefined) return refresh;
  const error = problems.find((one) => isMetadataTrouble(one?.code));
  return error === undefined ? refresh : { ...refresh, error };
}

function isMetadataTrouble(code: ErrorCode | undefined): boolean {
  return code !== undefined && /^(METADATA|SIGNATURE|DELEGATION)_/.test(code);
}

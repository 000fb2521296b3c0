// Activates a generation that is complete on disk: swap, load, reset, probe, commit. Used by an update, a rollback and the
// recovery of either. The journal exists from before the swap until the commit, so that a start finishes or undoes the move
// after a crash at any point. restore.ts undoes a move.
import type { Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, WritError } from '../../core/errors.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { collectGarbage } from '../generations/collect-garbage.js';
import { noteLinks, withRetired } from '../generations/generation-notes.js';
import { pointCurrentAt } from '../generations/generations.js';
import type { MoveResult } from '../job/cycle-result.js';
import type { CycleProgress } from '../job/progress.js';
import { aliveWorkers, markReplacedProcesses, recheckLiveness, throwIfDied } from '../notify/dead-workers.js';
import { refreshMembers } from '../notify/membership.js';
import type { NotifyContext } from '../notify/notify-context.js';
import { applyProbeResults, noteStep, resetWorkers } from '../notify/notify-steps.js';
import { verbsTo } from '../notify/notify-verbs.js';
import { problemsIn, warningsIn, workerFindings } from '../notify/pending-problems.js';
import { type ProbeResults, runProbes } from '../notify/probe-workers.js';
import { withSecondProbe } from '../notify/repeated-probe-rules.js';
import { type LoadReport, runLoaders } from '../notify/run-loaders.js';
import { announceActive } from '../notify/worker-groups.js';
import { noteUnreadGroups, noteWorkers, withWantedGeneration } from '../notify/worker-ledger.js';
import { withObservedRuns } from '../runs/note-runs.js';
import { observeRuns } from '../runs/observe-runs.js';
import { withContactBefore } from '../settled/contact-ledger.js';
import type { Host } from '../state/host.js';
import { clearJournal, writeJournal } from '../state/journal.js';
import { notificationTarget } from '../state/paths.js';
import { removeRefusalsOf } from '../state/refusals.js';
import { isDiskError } from '../state/state-file.js';
import { isUnmoved, requireMovable, requireMoved } from './check-before-move.js';
import { committedLedger } from './commit-ledger.js';
import { checkContactBeforeSwap } from './contact-before-swap.js';
import { observeEnds, withEndsInMove } from './ends-in-move.js';
import { forgetMove } from './forget-move.js';
import { contextOf, journalOf, type Move, type MoveProgress, resetText } from './move.js';
import { restorePrevious } from './restore.js';

/**
 * Performs a move from the swap to the commit, or restores the previous generation after a failure.
 * @param steps cycle progress, at the step `swap`
 * @returns outcome, workers, problems and warnings; a failure after the swap is in the outcome and the problems
 * @throws WritError SWAP_OUTDATED if the host changed since the move was planned; `current` was not moved then
 */
export async function activate(host: Host, steps: CycleProgress, move: Move): Promise<MoveResult> {
  const contactBefore = await checkContactBeforeSwap(host, move);
  const progress = { ...(await beginMove(host, move)), contactBefore };
  try {
    await steps.step('swap', () => swap(host, steps, move, progress));
    return await notifyAndCommit(host, steps, move, progress);
  } catch (error) {
    if (isUnmoved(error)) throw error;
    return restorePrevious(host, steps, move, { error: toMoveError(error, move), progress });
  }
}

/**
 * Continues a move after a crash that came after its swap. After a failure, restores the previous generation and notifies every
 * worker of the affected groups.
 * @param steps cycle progress, at the step `load`
 * @returns outcome, workers, problems and warnings
 */
export async function finishActivation(host: Host, steps: CycleProgress, move: Move): Promise<MoveResult> {
  const progress = await beginMove(host, move);
  try {
    announceActive(host.groups, notificationTarget(host.paths, move.to));
    return await notifyAndCommit(host, steps, move, progress);
  } catch (error) {
    // It is unknown which workers were notified before the crash, so the restore notifies every affected worker.
    return restorePrevious(host, steps, move, { error: toMoveError(error, move) });
  }
}

async function beginMove(host: Host, { groups, from, to }: Move): Promise<MoveProgress> {
  // Refresh the members first: the move does not wait for departed members, and notifies new ones.
  await refreshMembers(host, { active: from ?? to, groups, livenessCheck: 'departed' });
  const { workers: before } = host.ledger.read();
  const verbs = { to, ...(from === undefined ? {} : { from }), workers: before };
  const alive = await aliveWorkers(groups);
  const observed = await observeRuns(host, (name) => groups.some((one) => one.config.name === name));
  const runs = { observed, bootId: readBootId(), nowMs: host.clock.nowMs() };
  return { alive, before, verbOf: verbsTo(host, verbs), beganAtMs: runs.nowMs, runs };
}

/** A loader or probe that this process ended gives no verdict, so the error blames neither it nor the release. */
function toMoveError(error: unknown, { signal, to }: Move): WritError {
  const known = toWritError(error);
  if (!signal.aborted || known.kind === 'rolled-back') return known;
  return new WritError('INTERRUPTED', `the move to generation ${to} was ended`, { cause: error });
}

function swap(
  host: Host,
  steps: CycleProgress,
  move: Move,
  { verbOf, contactBefore, runs }: MoveProgress,
): { value: undefined; text: string } {
  const { paths, durable } = host;
  const { from, to: generation } = move;
  const beforeRename = (): void => requireMovable(host, { ...move, expected: [from] });
  beforeRename();
  const known = host.ledger.read();
  const before = withObservedRuns(host, known, runs);
  const asked = withContactBefore(move.ledger?.(before) ?? before, contactBefore);
  const noted = noteLinks(paths, asked, generation);
  const ledger = withRetired(host, noted, { left: from, current: generation });
  host.ledger.write(
    withWantedGeneration(ledger, move.groups, { generation, nowMs: host.clock.nowMs(), verbOf }),
  );
  writeJournal(paths, durable, journalOf(host, steps, move));
  try {
    pointCurrentAt(paths, durable, { generation, cycle: steps.cycle, beforeRename });
  } catch (error) {
    if (isUnmoved(error)) forgetMove(host, { cycle: steps.cycle, before: known });
    throw error;
  }
  requireMoved(host, generation);
  announceActive(host.groups, notificationTarget(host.paths, move.to));
  return { value: undefined, text: `generation ${from ?? 'none'} -> ${generation}` };
}

async function notifyAndCommit(
  host: Host,
  steps: CycleProgress,
  move: Move,
  progress: MoveProgress,
): Promise<MoveResult> {
  const { alive, verbOf } = progress;
  const context: NotifyContext = {
    ...contextOf(host, steps, move, move.to),
    behavior: {
      alive,
      verbOf,
      notifyNewcomers: true,
      isSilenceRefusal: () => true,
      retryDeferred: true,
      onNotify: (key, verb) => progress.notified?.set(key, verb),
      onStep: (keys) => noteStep(host, keys),
      // The crash may have come after this host stopped a worker and before it started the worker again.
      ...(move.swapCycle === undefined ? {} : { restartDead: true }),
    },
  };
  const { unreached } = await steps.step('load', async () => loadText(await runLoaders(host, context)));
  const reset = await steps.step('reset', async () => {
    progress.notified = new Map();
    const report = await resetWorkers(host, { ...context, unreached });
    noteWorkers(host, report.results);
    noteUnreadGroups(host, report.unread);
    return {
      value: report,
      text: resetText(report.results, move.to),
      verdict: areAllNotified(host) ? 'ok' : 'warn',
    };
  });
  const probed = await steps.step('probe', async () => {
    const found = await runProbes(host, context, reset.results);
    throwIfDied(
      reset.results,
      await recheckLiveness(move.groups, reset.results, { ...host, signal: move.signal }),
    );
    return {
      value: { found, results: await markReplacedProcesses(move.groups, reset.results) },
      text: probeText(found),
      verdict: found.withoutVerdict.size > 0 ? 'warn' : okOrSkip(found.seen.size),
    };
  });
  const proven = await applyProbeResults(move.groups, probed.found, probed.results);
  const isBack = move.kind === 'rollback';
  const workers = isBack ? withSecondProbe(move.groups, proven, host.clock.nowMs()) : proven;
  try {
    const ends = await steps.step('commit', () => commit(host, steps, { move, workers, progress }));
    const { problems, warnings } = judgedNow(host);
    const outcome = problems.length > 0 ? 'degraded' : 'activated';
    return { workers, problems, warnings: [...warnings, ...ends], outcome };
  } catch (error) {
    if (isDiskError(error)) host.restoreMemory.uncommitted = move.to;
    return uncommitted(steps, { workers, ...judgedNow(host) }, error);
  }
}

function judgedNow(host: Host): Pick<MoveResult, 'problems' | 'warnings'> {
  const findings = workerFindings(host);
  return { problems: problemsIn(findings), warnings: warningsIn(findings) };
}

/** @returns true if every worker was notified; confirmations that need a probe are left out, because probes run later */
function areAllNotified(host: Host): boolean {
  return problemsIn(workerFindings(host)).every((one) => one.code === 'WORKER_UNCONFIRMED');
}

/**
 * Returns the result of a move with a commit that failed on the disk. The workers accepted the new generation, so it stays
 * active. The ledger is in memory, so that the bake time runs. The journal stays, and the next start commits.
 */
function uncommitted(
  steps: CycleProgress,
  notified: Pick<MoveResult, 'workers' | 'problems' | 'warnings'>,
  error: unknown,
): MoveResult {
  steps.note({ type: 'stopped', outcome: 'failed' });
  return { ...notified, outcome: 'failed', problems: [problemOf(error), ...notified.problems] };
}

function loadText(report: LoadReport): {
  value: LoadReport;
  text: string;
  verdict: 'ok' | 'skip' | 'warn';
} {
  const { lines, unreached } = report;
  const verdict = unreached.size > 0 ? 'warn' : okOrSkip(lines.length);
  return { value: report, text: lines.join(', '), verdict };
}

function probeText({ seen, withoutVerdict }: ProbeResults): string {
  const silent = [...withoutVerdict].map(([about, { reason }]) => `${about}: ${reason}`);
  return [...[...seen].map((one) => `${one}: ok`), ...silent].join(', ');
}

function okOrSkip(count: number): 'ok' | 'skip' {
  return count > 0 ? 'ok' : 'skip';
}

async function commit(
  host: Host,
  steps: Pick<CycleProgress, 'cycle'>,
  {
    move,
    workers,
    progress: { beganAtMs: swappedAtMs, notified },
  }: {
    readonly move: Move;
    readonly workers: readonly WorkerResult[];
    readonly progress: MoveProgress;
  },
): Promise<{ value: readonly Problem[]; text: string }> {
  const endRuns = await observeEnds(host, move);
  using _ = host.ledger.tolerateDiskErrors(() => false);
  noteWorkers(host, workers);
  const cycle = move.swapCycle ?? steps.cycle;
  const committed = committedLedger(host, move, { cycle, swappedAtMs });
  const { ledger, warnings } = withEndsInMove(host, committed, { endRuns, to: move.to, notified });
  host.ledger.write(ledger);
  const disk = host.ledger.writeError();
  if (disk !== undefined) throw disk;
  removeRefusalsOf(host, move.releases);
  clearJournal(host.paths, host.durable);
  return { value: warnings, text: await collect(host, move) };
}

/** Runs the garbage collection. An error is only logged, because a later cycle collects again. */
async function collect(host: Host, move: Move): Promise<string> {
  try {
    const { removed } = await collectGarbage(host, { staging: () => move.staging });
    return removed > 0 ? `${removed} old generations removed` : '';
  } catch (error) {
    host.log.warn({ err: error }, 'old generations could not be removed');
    return '';
  }
}

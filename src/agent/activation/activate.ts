// From a generation on disk to workers that use it: swap, load, reset, probe, commit. Serves an update, a rollback and
// the recovery of either. The journal brackets everything between the link and the commit, so that a crash at any
// place is finished or undone; the way back is restore.ts's.
import type { Problem, WorkerResult } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, WritError } from '../../core/errors.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { collectGarbage } from '../generations/collect-garbage.js';
import { noteLinks, withRetired } from '../generations/generation-notes.js';
import { pointCurrentAt } from '../generations/generations.js';
import type { MoveResult } from '../job/cycle-result.js';
import type { CycleStory } from '../job/progress.js';
import { aliveWorkers, doubtReplaced, lookAfter, requireAlive } from '../notify/dead-workers.js';
import { readSets } from '../notify/membership.js';
import type { NotifyContext } from '../notify/notify-context.js';
import { noteStep, provenBy, resetWorkers } from '../notify/notify-steps.js';
import { verbsTo } from '../notify/notify-verbs.js';
import { problemsIn, warningsIn, workerFindings } from '../notify/pending-problems.js';
import { type Probed, runProbes } from '../notify/probe-workers.js';
import { withSecondProbe } from '../notify/repeated-probe-rules.js';
import { type LoadReport, runLoaders } from '../notify/run-loaders.js';
import { announceActive } from '../notify/worker-groups.js';
import { noteUnread, noteWorkers, wantGeneration } from '../notify/worker-ledger.js';
import { withObservedRuns } from '../runs/note-runs.js';
import { observeRuns } from '../runs/observe-runs.js';
import { withContactBefore } from '../settled/contact-ledger.js';
import type { Host } from '../state/host.js';
import { clearJournal, writeJournal } from '../state/journal.js';
import { notificationTarget } from '../state/paths.js';
import { removeRefusalsOf } from '../state/refusals.js';
import { isDiskError } from '../state/state-file.js';
import { askBeforeSwap } from './ask-before-swap.js';
import { committedLedger } from './commit-ledger.js';
import { lookForEnds, withEndsInMove } from './ends-in-move.js';
import { forgetMove } from './forget-move.js';
import { isUnmoved, requireMovable, requireMoved } from './look-before-move.js';
import { contextOf, journalOf, type Move, type MoveProgress, resetText } from './move.js';
import { restorePrevious } from './restore.js';

/**
 * Performs a move from the swap on; the machine of the story is at `swap`.
 * @throws WritError SWAP_OUTDATED where the host is not what the move was planned from: nothing was moved
 */
export async function activate(host: Host, story: CycleStory, move: Move): Promise<MoveResult> {
  const contactBefore = await askBeforeSwap(host, move);
  const progress = { ...(await beginMove(host, move)), contactBefore };
  try {
    await story.step('swap', () => swap(host, story, move, progress));
    return await notifyAndCommit(host, story, move, progress);
  } catch (error) {
    if (isUnmoved(error)) throw error;
    return restorePrevious(host, story, move, { error: blamed(error, move), progress });
  }
}

/** As activate for a swap that a crash left behind its link; the machine of the story is at `load`. */
export async function finishActivation(host: Host, story: CycleStory, move: Move): Promise<MoveResult> {
  const progress = await beginMove(host, move);
  try {
    announceActive(host.groups, notificationTarget(host.paths, move.to));
    return await notifyAndCommit(host, story, move, progress);
  } catch (error) {
    // Who was notified before the crash, and how, nobody knows: the way back notifies everybody.
    return restorePrevious(host, story, move, { error: blamed(error, move) });
  }
}

async function beginMove(host: Host, { groups, from, to }: Move): Promise<MoveProgress> {
  // Who is gone by now is not waited for, and who has come is notified.
  await readSets(host, { active: from ?? to, groups, doubt: 'the-gone' });
  const { workers: before } = host.ledger.read();
  const verbs = { to, ...(from === undefined ? {} : { from }), workers: before };
  const alive = await aliveWorkers(groups);
  const observed = await observeRuns(host, (name) => groups.some((one) => one.config.name === name));
  const runs = { observed, bootId: readBootId(), nowMs: host.clock.nowMs() };
  return { alive, before, verbOf: verbsTo(host, verbs), beganAtMs: runs.nowMs, runs };
}

/** A loader or a probe that we ended ourselves has said nothing: neither it nor the release is to blame. */
function blamed(error: unknown, { signal, to }: Move): WritError {
  const known = toWritError(error);
  if (!signal.aborted || known.kind === 'rolled-back') return known;
  return new WritError('INTERRUPTED', `the move to generation ${to} was ended`, { cause: error });
}

function swap(
  host: Host,
  story: CycleStory,
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
  host.ledger.write(wantGeneration(ledger, move.groups, { generation, nowMs: host.clock.nowMs(), verbOf }));
  writeJournal(paths, durable, journalOf(host, story, move));
  try {
    pointCurrentAt(paths, durable, { generation, cycle: story.cycle, beforeRename });
  } catch (error) {
    if (isUnmoved(error)) forgetMove(host, { cycle: story.cycle, before: known });
    throw error;
  }
  requireMoved(host, generation);
  announceActive(host.groups, notificationTarget(host.paths, move.to));
  return { value: undefined, text: `generation ${from ?? 'none'} -> ${generation}` };
}

async function notifyAndCommit(
  host: Host,
  story: CycleStory,
  move: Move,
  progress: MoveProgress,
): Promise<MoveResult> {
  const { alive, verbOf } = progress;
  const context: NotifyContext = {
    ...contextOf(host, story, move, move.to),
    manner: {
      alive,
      verbOf,
      newcomers: 'notified',
      isSilenceRefusal: () => true,
      notNow: 'is-waited-for',
      onNotify: (key, verb) => progress.notified?.set(key, verb),
      onStep: (keys) => noteStep(host, keys),
      // A crash may have come between a stop and a start of ours.
      ...(move.swapCycle === undefined ? {} : { restartDead: 'yes' }),
    },
  };
  const { unreached } = await story.step('load', async () => loadText(await runLoaders(host, context)));
  const reset = await story.step('reset', async () => {
    progress.notified = new Map();
    const report = await resetWorkers(host, { ...context, unreached });
    noteWorkers(host, report.results);
    noteUnread(host, report.unread);
    return {
      value: report,
      text: resetText(report.results, move.to),
      verdict: areAllNotified(host) ? 'ok' : 'warn',
    };
  });
  const probed = await story.step('probe', async () => {
    const found = await runProbes(host, context, reset.results);
    requireAlive(
      reset.results,
      await lookAfter(move.groups, reset.results, { ...host, signal: move.signal }),
    );
    return {
      value: { found, results: await doubtReplaced(move.groups, reset.results) },
      text: probeText(found),
      verdict: found.unheard.size > 0 ? 'warn' : okOrSkip(found.seen.size),
    };
  });
  const proven = await provenBy(move.groups, probed.found, probed.results);
  const isBack = move.kind === 'rollback';
  const workers = isBack ? withSecondProbe(move.groups, proven, host.clock.nowMs()) : proven;
  try {
    const ends = await story.step('commit', () => commit(host, story, { move, workers, progress }));
    const { problems, warnings } = judgedNow(host);
    const outcome = problems.length > 0 ? 'degraded' : 'activated';
    return { workers, problems, warnings: [...warnings, ...ends], outcome };
  } catch (error) {
    if (isDiskError(error)) host.restoreMemory.uncommitted = move.to;
    return uncommitted(story, { workers, ...judgedNow(host) }, error);
  }
}

function judgedNow(host: Host): Pick<MoveResult, 'problems' | 'warnings'> {
  const findings = workerFindings(host);
  return { problems: problemsIn(findings), warnings: warningsIn(findings) };
}

/** What only a probe can show is not asked yet. */
function areAllNotified(host: Host): boolean {
  return problemsIn(workerFindings(host)).every((one) => one.code === 'WORKER_UNCONFIRMED');
}

/**
 * The workers said yes and use the new generation: a disk that fails now is no reason to take it from them. The ledger is
 * in memory, so that the release bakes; the journal stays, and the next start commits.
 */
function uncommitted(
  story: CycleStory,
  notified: Pick<MoveResult, 'workers' | 'problems' | 'warnings'>,
  error: unknown,
): MoveResult {
  story.note({ type: 'stopped', outcome: 'failed' });
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

function probeText({ seen, unheard }: Probed): string {
  const silent = [...unheard].map(([about, { reason }]) => `${about}: ${reason}`);
  return [...[...seen].map((one) => `${one}: ok`), ...silent].join(', ');
}

function okOrSkip(count: number): 'ok' | 'skip' {
  return count > 0 ? 'ok' : 'skip';
}

async function commit(
  host: Host,
  story: Pick<CycleStory, 'cycle'>,
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
  const look = await lookForEnds(host, move);
  using _ = host.ledger.tolerateDiskErrors(() => false);
  noteWorkers(host, workers);
  const cycle = move.swapCycle ?? story.cycle;
  const committed = committedLedger(host, move, { cycle, swappedAtMs });
  const { ledger, warnings } = withEndsInMove(host, committed, { look, to: move.to, notified });
  host.ledger.write(ledger);
  const disk = host.ledger.writeError();
  if (disk !== undefined) throw disk;
  removeRefusalsOf(host, move.releases);
  clearJournal(host.paths, host.durable);
  return { value: warnings, text: await collect(host, move) };
}

/** What could not be removed now is removed after a later cycle. */
async function collect(host: Host, move: Move): Promise<string> {
  try {
    const { removed } = await collectGarbage(host, { staging: () => move.staging });
    return removed > 0 ? `${removed} old generations removed` : '';
  } catch (error) {
    host.log.warn({ err: error }, 'old generations could not be removed');
    return '';
  }
}

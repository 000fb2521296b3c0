// From a generation on disk to workers that use it: swap, load, reset, probe, commit, and the way back when
// somebody says no. Serves an update, a rollback and the recovery of either. The journal brackets everything
// between the link and the commit, so that a crash at any place is finished or undone.

import type { Problem, WorkerResult } from '../core/cycle-report.js';
import { toWritError, WritError } from '../core/errors.js';
import type { Journal } from '../core/recovery.js';
import type { Outcome } from '../core/sync-machine.js';
import { collectGarbage } from './collect-garbage.js';
import { committedLedger, digestsOf } from './commit-ledger.js';
import { type CycleStory, outcomeOf, problemOf } from './cycle-story.js';
import { countText } from './cycle-text.js';
import { pointCurrentAt, removeCurrent } from './generations.js';
import type { Host } from './host.js';
import { clearJournal, writeJournal } from './journal.js';
import { blockOf, type Ledger } from './ledger.js';
import { noteLoaded } from './load-at-boot.js';
import { noteLinks } from './noted-links.js';
import { forgetReleases, type NewRelease, rememberIfPossible } from './remember-refusals.js';
import { withRetired } from './retired.js';
import {
  judgeProof,
  resetWorkers,
  runLoaders,
  runProbes,
  type TellContext,
  type TellTarget,
} from './tell-steps.js';
import { touchTrees } from './touch-trees.js';
import { announceActive, type WorkerGroup } from './worker-groups.js';
import { noteWorkers, wantGeneration } from './worker-ledger.js';

/** One move of `current` and all that follows from it. */
export interface Move {
  readonly kind: Journal['kind'];
  /** Absent at a first activation. */
  readonly from?: TellTarget;
  readonly to: TellTarget;
  /** The groups that the difference concerns, or that are due. */
  readonly groups: readonly WorkerGroup[];
  /** The releases that are new with it: what a block keeps out, and what is refused no more at the commit. */
  readonly releases: readonly NewRelease[];
  readonly staging: string;
  readonly signal: AbortSignal;
  /** The cycle that the journal names where it is another one: that of the swap which a recovery finishes. */
  readonly swapCycle?: string;
  /** What the ledger must hold before the link moves, beside the move itself. */
  readonly ledger: (ledger: Ledger) => Ledger;
  /** Called with the refusal before the link goes back, so that a crash cannot make it forgotten. */
  readonly onRefused?: (error: WritError, groups: readonly string[]) => void;
}

export interface MoveResult {
  readonly outcome: Extract<Outcome, 'activated' | 'degraded' | 'rolled-back' | 'failed' | 'blocked'>;
  readonly confirmed: boolean;
  readonly workers: readonly WorkerResult[];
  readonly problems: readonly Problem[];
  readonly warnings: readonly Problem[];
  /** Why the previous generation is back. */
  readonly refusal?: WritError;
}

/** Performs a move from the swap on; the machine of the story is at `swap`. */
export async function performMove(host: Host, story: CycleStory, move: Move): Promise<MoveResult> {
  try {
    await story.step('swap', () => swap(host, story, move));
    return await tellAndCommit(host, story, move);
  } catch (error) {
    return putBack(host, story, move, blamed(error, move));
  }
}

/** As performMove for a swap that a crash left behind its link; the machine of the story is at `load`. */
export async function finishMove(host: Host, story: CycleStory, move: Move): Promise<MoveResult> {
  try {
    announceActive(host.groups, targetOf(move.to));
    return await tellAndCommit(host, story, move);
  } catch (error) {
    return putBack(host, story, move, blamed(error, move));
  }
}

/** A loader or a probe that we ended ourselves has said nothing: neither it nor the release is to blame. */
function blamed(error: unknown, { signal, to }: Move): WritError {
  const known = toWritError(error);
  if (!signal.aborted || known.kind === 'rolled-back') return known;
  return new WritError('INTERRUPTED', `the move to generation ${to.generation} was ended`, { cause: error });
}

function swap(host: Host, story: CycleStory, move: Move): { value: undefined; text: string } {
  const { paths, durable } = host;
  const change = { left: move.from?.generation, current: move.to.generation };
  const noted = noteLinks(paths, move.ledger(host.ledger.read()), move.to.generation);
  const ledger = withRetired(host, noted, change);
  host.ledger.write(wantGeneration(ledger, move.groups, move.to.generation, host.clock.nowMs()));
  writeJournal(paths, durable, journalOf(host, story, move));
  pointCurrentAt(paths, durable, { generation: move.to.generation, cycle: story.cycle });
  announceActive(host.groups, targetOf(move.to));
  return { value: undefined, text: `generation ${move.from?.generation ?? 'none'} -> ${move.to.generation}` };
}

function journalOf(host: Host, story: Pick<CycleStory, 'cycle'>, move: Move): Journal {
  return {
    writ: 1,
    cycle: story.cycle,
    ...(move.from ? { from: move.from.generation } : {}),
    to: move.to.generation,
    direction: 'forward',
    startedAtMs: host.clock.nowMs(),
    kind: move.kind,
  };
}

function targetOf(target: TellTarget): { generation: number; path: string } {
  return { generation: target.generation, path: target.path };
}

async function tellAndCommit(host: Host, story: CycleStory, move: Move): Promise<MoveResult> {
  const context = contextOf(host, move, move.to);
  await story.step('load', async () => lines(await runLoaders(context)));
  const reset = await story.step('reset', async () => {
    const report = await resetWorkers(host, context);
    noteWorkers(host, report.results);
    return {
      value: report,
      text: resetText(report.results, move.to.generation),
      verdict: report.problems.length > 0 ? 'warn' : 'ok',
    };
  });
  const probed = await story.step('probe', async () => {
    const groups = await runProbes(host, context);
    return {
      value: groups,
      text: [...groups].map((group) => `${group}: ok`).join(', '),
      verdict: okOrSkip(groups.size),
    };
  });
  const proof = judgeProof(move.groups, reset.results, probed);
  const problems = [...reset.problems, ...proof.problems];
  const told = { workers: proof.results, problems, warnings: reset.warnings };
  try {
    await story.step('commit', () => commit(host, story, { move, workers: proof.results }));
  } catch (error) {
    return uncommitted(story, told, error);
  }
  return {
    ...told,
    outcome: problems.length > 0 ? 'degraded' : 'activated',
    confirmed: proof.confirmed && problems.length === 0,
  };
}

/**
 * The workers said yes and use the new generation: a disk that fails now is no reason to take it from them. The
 * journal stays, and the next start commits.
 */
function uncommitted(
  story: CycleStory,
  told: Pick<MoveResult, 'workers' | 'problems' | 'warnings'>,
  error: unknown,
): MoveResult {
  story.note({ type: 'stopped', outcome: 'failed' });
  return { ...told, outcome: 'failed', confirmed: false, problems: [problemOf(error), ...told.problems] };
}

function contextOf({ durable }: Host, move: Move, target: TellTarget): TellContext {
  return { groups: move.groups, target, staging: move.staging, durable, signal: move.signal };
}

function lines(all: readonly string[]): { value: undefined; text: string; verdict: 'ok' | 'skip' } {
  return { value: undefined, text: all.join(', '), verdict: okOrSkip(all.length) };
}

function okOrSkip(count: number): 'ok' | 'skip' {
  return count > 0 ? 'ok' : 'skip';
}

function resetText(results: readonly WorkerResult[], generation: number): string {
  if (results.length === 0) return 'no worker to tell';
  const answered = results.filter((one) => one.state === 'confirmed').length;
  const told = results.filter((one) => one.state === 'told').length;
  const parts = [`${answered} of ${countText(results.length, 'worker')} answered generation ${generation}`];
  if (told > 0) parts.push(`${told} told without an answer that proves it`);
  const missing = results
    .filter((one) => one.state === 'unreachable')
    .map((one) => `${one.worker}: ${one.text}`);
  return [...parts, ...missing].join('; ');
}

async function commit(
  host: Host,
  story: Pick<CycleStory, 'cycle'>,
  { move, workers }: { readonly move: Move; readonly workers: readonly WorkerResult[] },
): Promise<{ value: undefined; text: string }> {
  noteWorkers(host, workers);
  host.ledger.write(committedLedger(host, move, move.swapCycle ?? story.cycle));
  forgetReleases(host, move.releases);
  clearJournal(host.paths, host.durable);
  return { value: undefined, text: await collect(host, move) };
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

/** The way back: remember, journal, link, then everybody is told again, the refusing one too. */
async function putBack(host: Host, story: CycleStory, move: Move, error: WritError): Promise<MoveResult> {
  const outcome = outcomeOf(error) === 'rolled-back' ? 'rolled-back' : 'failed';
  story.note({ type: 'stopped', outcome });
  try {
    if (outcome === 'rolled-back')
      rememberIfPossible(host, () => move.onRefused?.(error, refusingGroups(error)));
    const workers = await story.restore(() => restore(host, story, move));
    return { outcome, confirmed: false, workers, problems: [problemOf(error)], warnings: [], refusal: error };
  } catch (again) {
    return block(host, move, [error, toWritError(again)]);
  }
}

/** Names of the groups that said no, as tell-steps notes them. */
function refusingGroups(error: WritError): readonly string[] {
  const { groups } = error.facts as { groups?: readonly string[] };
  return groups ?? [];
}

/**
 * Puts the link back and tells the workers; also the undo of a recovery.
 * @param options.tell `no`: the workers stay due and are told apart, for the telling is what did not come to its end
 */
export async function restore(
  host: Host,
  story: Pick<CycleStory, 'cycle'>,
  move: Move,
  { tell }: { readonly tell: 'yes' | 'no' } = { tell: 'yes' },
): Promise<{ value: readonly WorkerResult[]; text: string; verdict: 'ok' | 'warn' }> {
  const { paths, durable } = host;
  writeJournal(paths, durable, { ...journalOf(host, story, move), direction: 'back' });
  const back = { left: move.to.generation, current: move.from?.generation };
  if (move.from === undefined) {
    removeCurrent(paths, durable);
    const { settled: _, ...rest } = withRetired(host, host.ledger.read(), back);
    host.ledger.write(rest);
    announceActive(host.groups, undefined);
    clearJournal(paths, durable);
    return { value: [], text: `generation ${move.to.generation} -> none`, verdict: 'ok' };
  }
  await makeNewer(host, move.from.generation, move.to.generation);
  pointCurrentAt(paths, durable, { generation: move.from.generation, cycle: story.cycle });
  announceActive(host.groups, targetOf(move.from));
  const ledger = { ...withRetired(host, host.ledger.read(), back), settled: move.from.generation };
  host.ledger.write(wantGeneration(ledger, move.groups, move.from.generation, host.clock.nowMs()));
  const moved = `generation ${move.to.generation} -> ${move.from.generation}`;
  if (tell === 'no') {
    clearJournal(paths, durable);
    return { value: [], text: `${moved}; workers are told later`, verdict: 'warn' };
  }
  const context = { ...contextOf(host, move, move.from), signal: new AbortController().signal };
  await runLoaders(context);
  noteLoaded(host, move.groups);
  const { results, problems } = await resetWorkers(host, context);
  const proof = judgeProof(move.groups, results, await runProbes(host, context));
  noteWorkers(host, proof.results);
  clearJournal(paths, durable);
  const text = `${moved}; ${resetText(proof.results, move.from.generation)}`;
  return { value: proof.results, text, verdict: problems.length > 0 ? 'warn' : 'ok' };
}

/**
 * Without a newer time a worker as BIND would keep what was just refused. Best effort: an old policy with an old
 * time is better than the new one.
 */
async function makeNewer(host: Host, comingBack: number, inUse: number): Promise<void> {
  try {
    await touchTrees(host, { comingBack, inUse });
  } catch (error) {
    host.log.warn({ err: error }, 'the files of the generation that comes back keep their time');
  }
}

/** Even the way back failed: these releases are not tried again by themselves, and everybody who looks is told. */
function block(host: Host, move: Move, [first, again]: readonly [WritError, WritError]): MoveResult {
  const reason = `${first.message}; then the way back failed: ${again.message}`;
  const error = new WritError('ACTIVATION_BLOCKED', reason, {
    facts: { first: first.code, again: again.code },
  });
  const blocked = blockOf(reason, host.clock.nowMs(), digestsOf(move.releases));
  host.ledger.write({ ...host.ledger.read(), blocked });
  const problems = [problemOf(error), problemOf(first), problemOf(again)];
  return { outcome: 'blocked', confirmed: false, workers: [], problems, warnings: [], refusal: error };
}

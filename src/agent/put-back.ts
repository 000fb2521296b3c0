// The way back when somebody says no after the swap: the refusal is remembered, the journal turned, the link put back,
// and everybody told again. What even that cannot mend ends in a block. Serves every move, and the undo of a recovery.

import type { WorkerResult } from '../core/cycle-report.js';
import { toWritError, WritError } from '../core/errors.js';
import { digestsOf } from './commit-ledger.js';
import { type CycleStory, outcomeOf, problemOf } from './cycle-story.js';
import { pointCurrentAt, removeCurrent } from './generations.js';
import type { Host } from './host.js';
import { clearJournal, writeJournal } from './journal.js';
import { blockOf } from './ledger.js';
import { noteLoaded } from './load-at-boot.js';
import { contextOf, journalOf, type Move, type MoveResult, resetText, targetOf } from './move.js';
import { rememberIfPossible } from './remember-refusals.js';
import { withRetired } from './retired.js';
import { judgeProof, resetWorkers, runLoaders, runProbes } from './tell-steps.js';
import { touchTrees } from './touch-trees.js';
import { announceActive } from './worker-groups.js';
import { noteWorkers, wantGeneration } from './worker-ledger.js';

/** The way back: remember, journal, link, then everybody is told again, the refusing one too. */
export async function putBack(
  host: Host,
  story: CycleStory,
  move: Move,
  error: WritError,
): Promise<MoveResult> {
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
  story: Pick<CycleStory, 'cycle' | 'nextTell'>,
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
  // Not always the one before the swap: where that is damaged, another one takes its place.
  const good = { settled: move.from.generation, lastKnownGood: move.from.generation };
  const ledger = { ...withRetired(host, host.ledger.read(), back), ...good };
  host.ledger.write(wantGeneration(ledger, move.groups, move.from.generation, host.clock.nowMs()));
  const moved = `generation ${move.to.generation} -> ${move.from.generation}`;
  if (tell === 'no') {
    clearJournal(paths, durable);
    return { value: [], text: `${moved}; workers are told later`, verdict: 'warn' };
  }
  const context = { ...contextOf(host, story, move, move.from), signal: new AbortController().signal };
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

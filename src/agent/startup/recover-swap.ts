// Performs what recovery has planned for a swap that a crash left behind its link: on to its end, back, or nothing but
// saying so where no generation is complete. Decides nothing; every part may be done again by the next start.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, WritError } from '../../core/errors.js';
import { finishActivation } from '../activation/activate.js';
import type { Move } from '../activation/move.js';
import { type Restored, restoreLink } from '../activation/restore.js';
import { releasesBrought, releasesNamedBy } from '../generations/generation-contents.js';
import { activeGenerationNumber } from '../generations/generations.js';
import {
  bundleBefore,
  bundleMoved,
  type CycleEnd,
  type CycleRecord,
  type MoveResult,
  noteBundles,
} from '../job/cycle-result.js';
import { endOf, withJob } from '../job/job.js';
import type { CycleStory } from '../job/progress.js';
import { withCrashes } from '../select/holds-and-blocks.js';
import type { Host } from '../state/host.js';
import { clearJournal } from '../state/journal.js';
import { type Journal, type RestoreTarget, rebuiltJournalCycle } from '../state/recovery-rules.js';
import { recordBlamedReleases } from '../state/refusals.js';
import { finishRestore, fromJournalRefusal, restoreProblems } from '../state/restore-memory.js';

/** A swap as a start finds it. */
export interface InterruptedSwap {
  readonly cycle: string;
  readonly signal: AbortSignal;
  readonly journal: Journal;
  /** Where the way back leads, also from a way forward on which somebody refuses. */
  readonly back: RestoreTarget;
}

/** Notifies the workers (again), then commits. */
export function finishSwap(host: Host, left: InterruptedSwap): Promise<CycleEnd> {
  return inJob(host, left, 'load', async (_, story, move, record) => {
    const { from } = left.journal;
    const moved = await finishActivation(host, story, move);
    // The cycle that began this move has no entry of its own: this one has what it changed.
    record.fromGeneration = from;
    const before = from === undefined ? [] : releasesNamedBy(host.paths, from);
    const serialOf = (name: string) => before.find(({ bundle }) => bundle === name)?.serial;
    noteBundles(
      record,
      releasesBrought(host.paths, left.journal).map((one) =>
        bundleMoved(bundleBefore(one, serialOf(one.bundle)), moved),
      ),
    );
    return moved;
  });
}

export interface Undo extends InterruptedSwap {
  readonly shouldBlock: boolean;
  readonly shouldNotify: boolean;
  readonly found: { readonly active: number | undefined; readonly isDamageKnown: boolean };
}

/** Puts the link to `back`, and notifies the workers. */
export function undoSwap(host: Host, undo: Undo): Promise<CycleEnd> {
  return inJob(host, undo, 'swap', (_, story, move) => goBack(host, story, { ...undo, move }));
}

/** Leaves the link, for nothing else is complete: what is to be done is said, and the start goes on. */
export function stayBehindSwap(
  host: Host,
  left: InterruptedSwap & Pick<Undo, 'shouldBlock'>,
): Promise<CycleEnd> {
  return inJob(host, left, 'swap', async () => {
    clearJournal(host.paths, host.durable);
    const damage = problemOf(nothingWhole(left.journal));
    const problems = left.shouldBlock ? [blockedBy(host, left), damage] : [damage];
    return { ...outcomeIf(left.shouldBlock), workers: [], problems, warnings: [] };
  });
}

async function inJob(
  host: Host,
  left: InterruptedSwap,
  firstStep: 'load' | 'swap',
  act: (host: Host, story: CycleStory, move: Move, record: CycleRecord) => Promise<MoveResult>,
): Promise<CycleEnd> {
  return withJob(host, { cycle: left.cycle, trigger: 'recovery', firstStep }, async (job) => {
    const { story, record, area } = job;
    record.fromGeneration = activeGenerationNumber(host.paths);
    record.moves.push(await act(host, story, moveOf(host, left, area.path()), record));
    return isKnown(left) ? { ...endOf(job), recovers: left.journal.cycle } : endOf(job);
  });
}

function isKnown({ journal }: Pick<InterruptedSwap, 'journal'>): boolean {
  return journal.cycle !== rebuiltJournalCycle;
}

/** With the link back, workers that refuse must not keep the agent from starting: that is a block, said loudly. */
async function goBack(host: Host, story: CycleStory, undo: Undo & { move: Move }): Promise<MoveResult> {
  const { journal, back, shouldBlock, shouldNotify, move, found } = undo;
  const { refused } = journal;
  const refusal = refused && fromJournalRefusal(refused);
  const problems = [
    shouldBlock ? blockedBy(host, undo) : problemOf(refusal ?? interrupted(undo)),
    ...(back === (journal.from ?? 'nothing') ? [] : [problemOf(otherWayBack(undo))]),
  ];
  const notify = shouldNotify ? 'yes' : 'no';
  try {
    const restored = await story.restore(() => restoreLink(host, story, move, { notify, refused, found }));
    if (isNotifiedAgain(undo)) return notifiedAgain(host, restored);
    const outcome = outcomeIf(shouldBlock, refusal);
    return {
      ...restored,
      ...outcome,
      problems: [...problems, ...restored.problems, ...restoreProblems(host)],
    };
  } catch (error) {
    if (activeGenerationNumber(host.paths) !== back) throw error;
    finishRestore(host, { ...journal, direction: 'back' }, refusal);
    const text = `generation ${back} is active again, but: ${toWritError(error).message}`;
    const problem = problemOf(new WritError('ACTIVATION_BLOCKED', text));
    return { ...outcomeIf(true), workers: [], problems: [problem, problemOf(error)], warnings: [] };
  }
}

/** No swap was cut short as far as anybody knows: what was lost is who had been notified, and now they have been. */
function isNotifiedAgain({ journal, back }: Undo): boolean {
  return journal.from === journal.to && back === journal.to;
}

function notifiedAgain(host: Host, notified: Restored): MoveResult {
  host.ledger.write(withCrashes(host.ledger.read(), undefined));
  return { ...notified, outcome: notified.problems.length === 0 ? 'activated' : 'degraded' };
}

function outcomeIf(isBlocked: boolean, refusal?: WritError): Pick<MoveResult, 'outcome'> {
  if (isBlocked) return { outcome: 'blocked' };
  return { outcome: refusal?.kind === 'rolled-back' ? 'rolled-back' : 'failed' };
}

function moveOf(host: Host, { cycle, journal, back, signal }: InterruptedSwap, staging: string): Move {
  const releases = releasesBrought(host.paths, journal);
  return {
    kind: journal.kind,
    from: typeof back === 'number' ? back : undefined,
    to: journal.to,
    // Nobody knows who had been notified when the crash came: everybody is notified again.
    groups: host.groups,
    releases,
    staging,
    signal,
    // What was committed is asked for in the history by this name.
    swapCycle: isKnown({ journal }) ? journal.cycle : cycle,
    // As in the cycle that crashed.
    ...(journal.kind === 'update'
      ? { onRefused: (error, groups) => recordBlamedReleases(host, releases, error, groups) }
      : {}),
  };
}

function interrupted({ journal: { from, to }, back }: Undo): WritError {
  const before = typeof back === 'number' ? back : 'none';
  const text = `the move to generation ${to} was cut short; generation ${before} is active again`;
  return new WritError('INTERRUPTED', text, { facts: { from, to }, hint: 'The next poll tries it again.' });
}

function otherWayBack({ journal: { from, to }, back }: Undo): WritError {
  return new WritError(
    'STATE_DAMAGED',
    `generation ${from} is no longer intact; generation ${back} is active`,
    {
      facts: { from, to, back },
      hint: 'The next cycle fetches the missing files, and makes a new generation.',
    },
  );
}

function nothingWhole({ from, to }: Journal): WritError {
  const text = `generations ${from} and ${to} are not intact, and no other one is kept: the link was not changed`;
  return new WritError('STATE_DAMAGED', text, {
    facts: { from, to },
    hint: 'Run `writ pull --force`: it fetches the policy again and makes a new generation.',
  });
}

function blockedBy(host: Host, { journal }: InterruptedSwap): Problem {
  const { blocked } = host.ledger.read();
  const facts = { from: journal.from, to: journal.to };
  const text = blocked?.reason ?? `generation ${journal.to} did not finish`;
  return problemOf(new WritError('ACTIVATION_BLOCKED', text, { facts }));
}

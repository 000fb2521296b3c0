// Performs the recovery plan for a swap that crashed after it moved the link: finishes it, undoes it, or only reports that
// no generation is intact. Makes no decision. The next start can repeat each step.
import type { Problem } from '../../core/cycle/cycle-report.js';
import { problemOf } from '../../core/cycle/problem.js';
import { toWritError, WritError } from '../../core/errors.js';
import { finishActivation } from '../activation/activate.js';
import type { Move } from '../activation/move.js';
import { type Restored, restoreLink } from '../activation/restore.js';
import { findNewReleases, readNamedReleases } from '../generations/generation-contents.js';
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
import type { CycleProgress } from '../job/progress.js';
import { withCrashes } from '../select/holds-and-blocks.js';
import type { Host } from '../state/host.js';
import { clearJournal } from '../state/journal.js';
import { type Journal, type RestoreTarget, rebuiltJournalCycle } from '../state/recovery-rules.js';
import { recordBlamedReleases } from '../state/refusals.js';
import { finishRestore, fromJournalRefusal, restoreProblems } from '../state/restore-memory.js';

/** An unfinished swap that a start finds in the journal. */
export interface InterruptedSwap {
  readonly cycle: string;
  readonly signal: AbortSignal;
  readonly journal: Journal;
  /** The target of an undo, also of the restore after a worker refuses the finished swap. */
  readonly back: RestoreTarget;
}

/**
 * Finishes the swap: notifies all workers, also those notified before the crash, then commits.
 * @param left the journal of the swap and the target of its restore
 */
export function finishSwap(host: Host, left: InterruptedSwap): Promise<CycleEnd> {
  return runInJob(host, left, 'load', async (_, progress, move, record) => {
    const { from } = left.journal;
    const moved = await finishActivation(host, progress, move);
    // The cycle that began this move has no history entry, so the entry of this recovery contains its changes.
    record.fromGeneration = from;
    const before = from === undefined ? [] : readNamedReleases(host.paths, from);
    const serialOf = (name: string) => before.find(({ bundle }) => bundle === name)?.serial;
    noteBundles(
      record,
      findNewReleases(host.paths, left.journal).map((one) =>
        bundleMoved(bundleBefore(one, serialOf(one.bundle)), moved),
      ),
    );
    return moved;
  });
}

export interface SwapUndo extends InterruptedSwap {
  readonly shouldBlock: boolean;
  readonly shouldNotify: boolean;
  readonly found: { readonly active: number | undefined; readonly isDamageKnown: boolean };
}

/** Moves the link to `back`, then notifies the workers if `shouldNotify`. */
export function undoSwap(host: Host, undo: SwapUndo): Promise<CycleEnd> {
  return runInJob(host, undo, 'swap', (_, progress, move) => performUndo(host, progress, { ...undo, move }));
}

/** Keeps the link, because no generation is intact. The result contains a hint for the operator, and the start continues. */
export function keepLinkAfterSwap(
  host: Host,
  left: InterruptedSwap & Pick<SwapUndo, 'shouldBlock'>,
): Promise<CycleEnd> {
  return runInJob(host, left, 'swap', async () => {
    clearJournal(host.paths, host.durable);
    const damage = problemOf(noIntactGenerationError(left.journal));
    const problems = left.shouldBlock ? [blockProblem(host, left), damage] : [damage];
    return { ...undoOutcome(left.shouldBlock), workers: [], problems, warnings: [] };
  });
}

async function runInJob(
  host: Host,
  left: InterruptedSwap,
  firstStep: 'load' | 'swap',
  act: (host: Host, progress: CycleProgress, move: Move, record: CycleRecord) => Promise<MoveResult>,
): Promise<CycleEnd> {
  return withJob(host, { cycle: left.cycle, trigger: 'recovery', firstStep }, async (job) => {
    const { progress, record, area } = job;
    record.fromGeneration = activeGenerationNumber(host.paths);
    record.moves.push(await act(host, progress, moveOf(host, left, area.path()), record));
    return isCycleKnown(left) ? { ...endOf(job), recovers: left.journal.cycle } : endOf(job);
  });
}

function isCycleKnown({ journal }: Pick<InterruptedSwap, 'journal'>): boolean {
  return journal.cycle !== rebuiltJournalCycle;
}

/** After the link is restored, a worker refusal must not prevent the start: it is reported as a block. */
async function performUndo(
  host: Host,
  progress: CycleProgress,
  undo: SwapUndo & { move: Move },
): Promise<MoveResult> {
  const { journal, back, shouldBlock, shouldNotify, move, found } = undo;
  const { refused } = journal;
  const refusal = refused && fromJournalRefusal(refused);
  const problems = [
    shouldBlock ? blockProblem(host, undo) : problemOf(refusal ?? interruptedError(undo)),
    ...(back === (journal.from ?? 'nothing') ? [] : [problemOf(otherTargetError(undo))]),
  ];
  try {
    const restored = await progress.restore(() =>
      restoreLink(host, progress, move, { shouldNotify, refused, found }),
    );
    if (isRepeatedNotification(undo)) return endRepeatedNotification(host, restored);
    const outcome = undoOutcome(shouldBlock, refusal);
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
    return { ...undoOutcome(true), workers: [], problems: [problem, problemOf(error)], warnings: [] };
  }
}

/**
 * Whether an undo only notifies the workers again, after the record of notified workers was lost. No swap is known to be
 * interrupted then, so the crashes are cleared.
 */
function isRepeatedNotification({ journal, back }: SwapUndo): boolean {
  return journal.from === journal.to && back === journal.to;
}

function endRepeatedNotification(host: Host, notified: Restored): MoveResult {
  host.ledger.write(withCrashes(host.ledger.read(), undefined));
  return { ...notified, outcome: notified.problems.length === 0 ? 'activated' : 'degraded' };
}

function undoOutcome(isBlocked: boolean, refusal?: WritError): Pick<MoveResult, 'outcome'> {
  if (isBlocked) return { outcome: 'blocked' };
  return { outcome: refusal?.kind === 'rolled-back' ? 'rolled-back' : 'failed' };
}

function moveOf(host: Host, { cycle, journal, back, signal }: InterruptedSwap, staging: string): Move {
  const releases = findNewReleases(host.paths, journal);
  return {
    kind: journal.kind,
    from: typeof back === 'number' ? back : undefined,
    to: journal.to,
    // It is unknown which workers were notified before the crash, so all groups are notified.
    groups: host.groups,
    releases,
    staging,
    signal,
    // The history is searched for the committed cycle by this name.
    swapCycle: isCycleKnown({ journal }) ? journal.cycle : cycle,
    // A refusal is recorded as in the cycle that crashed.
    ...(journal.kind === 'update'
      ? { onRefused: (error, groups) => recordBlamedReleases(host, releases, error, groups) }
      : {}),
  };
}

function interruptedError({ journal: { from, to }, back }: SwapUndo): WritError {
  const before = typeof back === 'number' ? back : 'none';
  const text = `the move to generation ${to} was cut short; generation ${before} is active again`;
  return new WritError('INTERRUPTED', text, { facts: { from, to }, hint: 'The next poll tries it again.' });
}

function otherTargetError({ journal: { from, to }, back }: SwapUndo): WritError {
  return new WritError(
    'STATE_DAMAGED',
    `generation ${from} is no longer intact; generation ${back} is active`,
    {
      facts: { from, to, back },
      hint: 'The next cycle fetches the missing files, and makes a new generation.',
    },
  );
}

function noIntactGenerationError({ from, to }: Journal): WritError {
  const text = `generations ${from} and ${to} are not intact, and no other one is kept: the link was not changed`;
  return new WritError('STATE_DAMAGED', text, {
    facts: { from, to },
    hint: 'Run `writ pull --force`: it fetches the policy again and makes a new generation.',
  });
}

function blockProblem(host: Host, { journal }: InterruptedSwap): Problem {
  const { blocked } = host.ledger.read();
  const facts = { from: journal.from, to: journal.to };
  const text = blocked?.reason ?? `generation ${journal.to} did not finish`;
  return problemOf(new WritError('ACTIVATION_BLOCKED', text, { facts }));
}

// Restores the previous generation after a refusal that came after the swap: records the refusal, reverses the journal, moves
// the link, and notifies every worker again. If the restore fails too, it ends with a block. Recovery uses it as well.
import { outcomeOf, problemOf } from '../../core/cycle/problem.js';
import { type ErrorCode, isImplicitRefusal, toWritError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { utcTimeText } from '../../core/text/iso-time.js';
import { readNamedReleases } from '../generations/generation-contents.js';
import { withRetired } from '../generations/generation-notes.js';
import {
  activeGenerationNumber,
  type LinkMove,
  pointCurrentAt,
  removeCurrent,
} from '../generations/generations.js';
import { touchIfPossible } from '../generations/touch-trees.js';
import type { MoveResult } from '../job/cycle-result.js';
import type { CycleProgress } from '../job/progress.js';
import { announceActive } from '../notify/worker-groups.js';
import { noteWorkers } from '../notify/worker-ledger.js';
import { refusingGroupsIn, resultsIn } from '../notify/worker-refusal.js';
import { withBlock, withoutHoldsOn } from '../select/holds-and-blocks.js';
import { noteFailedAttempt } from '../select/waits.js';
import { withRunsUnknown } from '../settled/settled-ledger.js';
import type { Host, RefusalsDocument } from '../state/host.js';
import { notificationTarget } from '../state/paths.js';
import type { Journal, JournalRefusal } from '../state/recovery-rules.js';
import { recordIfPossible, undoRefusals } from '../state/refusals.js';
import {
  finishRestore,
  keepUnrecordedRestore,
  restoreProblems,
  retryWithReserve,
  toJournalRefusal,
  tolerateDiskErrors,
  writeRestoreJournal,
} from '../state/restore-memory.js';
import { isDiskError } from '../state/state-file.js';
import { findLostState, isUnmoved, requireMovable } from './check-before-move.js';
import { digestsOf, withRestoredGeneration } from './commit-ledger.js';
import { forgetMove } from './forget-move.js';
import { journalOf, type Move, type MoveProgress, resetText } from './move.js';
import { notifyRestored, type RestoredWorkers, wantRestored } from './notify-restored.js';

/**
 * Restores the previous generation after a failed move. First records the refusal, or the time of the next try if there was
 * no verdict. Then writes the journal, moves the link, and notifies the workers, including the one that refused.
 * @param failure.progress of the failed move; left out after a crash, and every affected worker is notified then
 */
export async function restorePrevious(
  host: Host,
  steps: CycleProgress,
  move: Move,
  { error: no, progress }: { readonly error: WritError; readonly progress?: MoveProgress },
): Promise<MoveResult> {
  const outcome = outcomeOfFailure(no);
  const isVerdict = no.kind === 'rolled-back';
  const lost = findLostState(host);
  steps.note({ type: 'stopped', outcome: lost === undefined ? outcome : 'failed' });
  if (lost !== undefined) return leaveMove(host, { steps, errors: [no, lost] });
  const error = isVerdict ? no : deferRetry(host, move, no);
  const before = host.refusals.read();
  // A full disk must not keep workers on a refused policy: records that cannot be written stay in memory.
  using _ = tolerateDiskErrors(host);
  try {
    let blamed: readonly string[] = [];
    if (isVerdict) {
      recordIfPossible(host, () => {
        blamed = move.onRefused?.(error, refusingGroupsIn(error)) ?? [];
      });
    }
    const refused = isVerdict ? toJournalRefusal(error, blamed) : undefined;
    const options = { shouldNotify: true, progress, forward: no, refused } as const;
    const { repeated, ...back } = await steps.restore(() => restoreLink(host, steps, move, options));
    const last = isVerdict && repeated === true ? forgetRepeatedRefusal(host, move, { no, before }) : error;
    return {
      ...back,
      outcome,
      problems: [problemOf(last), ...back.problems, ...restoreProblems(host)],
      blamed,
    };
  } catch (again) {
    if (isUnmoved(again) && again.facts['because'] !== 'target')
      return leaveMove(host, { steps, errors: [error, again] });
    if (isDiskError(again) && activeGenerationNumber(host.paths) !== move.from)
      return keepUnrestored(host, move, { steps, error, disk: again });
    return blockActivation(host, move, { steps, errors: [error, toWritError(again)] });
  }
}

/**
 * Ends a move if another process has moved the link or the lock is lost: that process decides which generation is active.
 * Removes the journal of this move, because a start would act on it.
 */
function leaveMove(
  host: Host,
  { steps: { cycle }, errors }: { readonly steps: CycleProgress; readonly errors: readonly WritError[] },
): MoveResult {
  forgetMove(host, { cycle, before: host.ledger.read() });
  return { outcome: 'failed', workers: [], problems: errors.map(problemOf), warnings: [] };
}

/** Handles a disk error that prevents the move of the link: a later attempt moves it, and workers are not notified before. */
function keepUnrestored(
  host: Host,
  move: Move,
  {
    steps,
    error,
    disk,
  }: { readonly steps: CycleProgress; readonly error: WritError; readonly disk: WritError },
): MoveResult {
  noteWorkers(host, resultsIn(error));
  const bundles = move.releases.map(({ bundle }) => bundle);
  const refused = error.kind === 'rolled-back' ? { refused: toJournalRefusal(error, bundles) } : {};
  const journal = { ...backwardJournal(host, steps, move), ...refused };
  keepUnrecordedRestore(host, { journal, diskError: disk, refusal: error });
  const problems = [problemOf(error), ...restoreProblems(host)];
  return { outcome: 'failed', workers: [], problems, warnings: [] };
}

function outcomeOfFailure(no: WritError): 'rolled-back' | 'deferred' | 'failed' {
  // No worker refused explicitly: the move is restored, and the release is never recorded as refused.
  if (isImplicitRefusal(no.code)) return 'rolled-back';
  const outcome = outcomeOf(no);
  return outcome === 'rolled-back' || outcome === 'deferred' ? outcome : 'failed';
}

/**
 * Defers the next try after a command gave no verdict or a deferral. Otherwise every poll would move the link forward and
 * back again.
 * @returns the error with the time of the next try; unchanged on a host without another policy, which tries at each cycle
 */
function deferRetry(host: Host, { from, releases }: Move, no: WritError): WritError {
  const groups = refusingGroupsIn(no);
  if (from === undefined || releases.length === 0 || groups.length === 0) return no;
  let untilMs: number | undefined;
  recordIfPossible(host, () => {
    untilMs = noteFailedAttempt(host, releases, { code: no.code, groups });
  });
  if (untilMs === undefined) return no;
  const text = `${no.message}; not tried again before ${utcTimeText(untilMs)}`;
  const { hint } = no;
  return new WritError(no.code, text, {
    facts: { ...no.facts, untilMs },
    cause: no,
    ...(hint === undefined ? {} : { hint }),
  });
}

/**
 * Removes the recorded refusal: the restored generation was refused with the same text, so it is no verdict on the releases.
 * @returns REFUSAL_REPEATED, with the time of the next try
 */
function forgetRepeatedRefusal(
  host: Host,
  move: Move,
  { no, before }: { readonly no: WritError; readonly before: RefusalsDocument },
): WritError {
  recordIfPossible(host, () => undoRefusals(host, before));
  const text = `${no.message}; generation ${move.from} was refused with the same text`;
  const facts = { ...no.facts, refusedFor: no.code };
  return deferRetry(host, move, new WritError('REFUSAL_REPEATED', text, { facts, cause: no }));
}

export interface RestoreOptions {
  /** False in a recovery if the notification itself crashed before: the workers stay pending and are notified later. */
  readonly shouldNotify: boolean;
  readonly progress?: MoveProgress | undefined;
  /** The refusal of the new generation; left out if no worker or command refused it. */
  readonly forward?: WritError;
  /** The refusal for the journal, which a start records if the refusals cannot be written now. */
  readonly refused?: JournalRefusal | undefined;
  /** The active generation when a recovery planned the restore; left out in the process of the move itself. */
  readonly found?: { readonly active: number | undefined; readonly isDamageKnown: boolean };
}

export type Restored = RestoredWorkers;

/** Moves the link back, notifies workers. @throws WritError SWAP_OUTDATED, STATE_VANISHED, DISK_*, LOADER_*, WORKER_*, PROBE_* */
export async function restoreLink(
  host: Host,
  steps: Pick<CycleProgress, 'cycle' | 'nextNotificationId'>,
  move: Move,
  { shouldNotify, progress, forward, refused, found }: RestoreOptions,
): Promise<{ value: Restored; text: string; verdict: 'ok' | 'warn' }> {
  const { paths } = host;
  const { from, to } = move;
  const expected = found === undefined ? [to, from] : [found.active];
  const beforeRename = (): void =>
    requireMovable(host, { to: from, expected, isDamageKnown: found?.isDamageKnown });
  beforeRename();
  const journal = backwardJournal(host, steps, move);
  writeRestoreJournal(host, journal, refused);
  const end = (): void => finishRestore(host, { ...journal, ...given({ refused }) }, forward);
  const back = { left: to, current: from };
  if (from === undefined) {
    restoreCurrent(host, from, { cycle: steps.cycle, beforeRename });
    host.ledger.write(
      withRestoredGeneration(host, withRetired(host, host.ledger.read(), back), { from, to }),
    );
    announceActive(host.groups, undefined);
    end();
    return { value: noWorkers, text: `generation ${to} -> none`, verdict: 'ok' };
  }
  await touchIfPossible(host, { comingBack: from, inUse: to });
  restoreCurrent(host, from, { cycle: steps.cycle, beforeRename });
  announceActive(host.groups, notificationTarget(paths, from));
  const known = withRestoredGeneration(host, withRetired(host, host.ledger.read(), back), { from, to });
  const ledger = withoutHoldsOn(known, digestsOf(readNamedReleases(paths, from)));
  host.ledger.write(wantRestored(host, ledger, { ...move, from }, progress));
  const moved = `generation ${to} -> ${from}`;
  if (!shouldNotify) {
    end();
    return { value: noWorkers, text: `${moved}; workers are notified later`, verdict: 'warn' };
  }
  const value = await notifyRestored(host, steps, { ...move, from }, { progress, forward });
  const groups = move.groups.map(({ config }) => config.name);
  host.ledger.write(withRunsUnknown(host.ledger.read(), groups));
  end();
  const text = `${moved}; ${resetText(value.workers, from)}`;
  return { value, text, verdict: value.problems.length > 0 ? 'warn' : 'ok' };
}

function backwardJournal(host: Host, steps: Pick<CycleProgress, 'cycle'>, move: Move): Journal {
  return { ...journalOf(host, steps, move), direction: 'back' };
}

/** Moves the link. An error of the flush after the rename is only logged: the link has moved, and a start reads the journal. */
function restoreCurrent(
  host: Host,
  generation: number | undefined,
  how: Pick<LinkMove, 'cycle'> & { readonly beforeRename: () => void },
): void {
  const { paths, durable } = host;
  try {
    retryWithReserve(host, () => {
      if (generation !== undefined) return pointCurrentAt(paths, durable, { generation, ...how });
      how.beforeRename();
      removeCurrent(paths, durable);
    });
  } catch (error) {
    if (!isDiskError(error) || activeGenerationNumber(paths) !== generation) throw error;
    host.log.error({ err: error }, 'the link moved back, and its directory could not be flushed');
  }
}

const noWorkers: Restored = { workers: [], problems: [], warnings: [] };

/** Failures of a worker or its probe during the restore. The worker stays pending and is notified until it confirms. */
const workerCodes: ReadonlySet<ErrorCode> = new Set([
  'WORKER_REFUSED',
  'WORKER_DIED',
  'PROBE_FAILED',
  'PROBE_BROKEN',
]);

/** Blocks the releases after a failed restore: they are not activated again automatically, and the status reports the block. */
function blockActivation(
  host: Host,
  move: Move,
  {
    steps,
    errors: [first, again],
  }: { readonly steps: CycleProgress; readonly errors: readonly [WritError, WritError] },
): MoveResult {
  const reason = blockReason(host, move, [first, again]);
  const error = new WritError('ACTIVATION_BLOCKED', reason, {
    facts: { first: first.code, again: again.code },
  });
  const releases = digestsOf(move.releases);
  const until = workerCodes.has(again.code) || isDiskError(again) ? { until: 'workers' as const } : {};
  host.ledger.write(withBlock(host.ledger.read(), { reason, atMs: host.clock.nowMs(), releases, ...until }));
  const disk = host.ledger.writeError() ?? host.refusals.writeError();
  if (disk !== undefined)
    keepUnrecordedRestore(host, {
      journal: backwardJournal(host, steps, move),
      diskError: disk,
      refusal: first,
    });
  const problems = [problemOf(error), problemOf(first), problemOf(again), ...restoreProblems(host)];
  return { outcome: 'blocked', workers: [], problems, warnings: [] };
}

/** @returns a text with the failed, the unrestored and the active generation, each with the releases of the move */
function blockReason(
  { paths }: Host,
  { from, to, releases }: Move,
  [first, again]: readonly [WritError, WritError],
): string {
  const names = releases.map(({ bundle }) => bundle);
  const named = (generation: number): string => {
    const brought = readNamedReleases(paths, generation).filter(({ bundle }) => names.includes(bundle));
    const texts = brought.map(({ bundle, serial }) => `${bundle} ${serial}`);
    return texts.length === 0 ? `generation ${generation}` : `generation ${generation} (${texts.join(', ')})`;
  };
  const before = from === undefined ? '' : ` of ${named(from)}`;
  const active = activeGenerationNumber(paths) ?? 'none';
  return `${named(to)}: ${first.message}; then the restore${before} failed: ${again.message}; generation ${active} is active`;
}

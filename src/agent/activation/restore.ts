// The way back when somebody refuses after the swap: the refusal is remembered, the journal turned, the link put back,
// and everybody notified again. What even that cannot repair ends with a block. Serves every move, and the undo of a recovery.
import { outcomeOf, problemOf } from '../../core/cycle/problem.js';
import { type ErrorCode, isUnsaidNo, toWritError, WritError } from '../../core/errors.js';
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
import type { CycleStory } from '../job/progress.js';
import { groupsIn, resultsIn } from '../notify/refusal.js';
import { announceActive } from '../notify/worker-groups.js';
import { noteWorkers } from '../notify/worker-ledger.js';
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
import { digestsOf, withWayBack } from './commit-ledger.js';
import { forgetMove } from './forget-move.js';
import { findLostState, isUnmoved, requireMovable } from './look-before-move.js';
import { journalOf, type Move, type MoveProgress, resetText } from './move.js';
import { notifyRestored, type RestoredWorkers, wantBack } from './notify-restored.js';

/**
 * The way back: remember (a refusal, or until when what gave no verdict is left alone), journal, link, then everybody is
 * notified again, the refusing one too.
 * @param no.progress of the move until then; left out where nobody knows: everybody is notified
 */
export async function restorePrevious(
  host: Host,
  story: CycleStory,
  move: Move,
  { error: no, progress }: { readonly error: WritError; readonly progress?: MoveProgress },
): Promise<MoveResult> {
  const outcome = outcomeOfNo(no);
  const isVerdict = no.kind === 'rolled-back';
  const lost = findLostState(host);
  story.note({ type: 'stopped', outcome: lost === undefined ? outcome : 'failed' });
  if (lost !== undefined) return leaveMove(host, { story, errors: [no, lost] });
  const error = isVerdict ? no : triedInVain(host, move, no);
  const before = host.refusals.read();
  // A full disk must not keep workers on what they have refused: what cannot be written stays in memory.
  using _ = tolerateDiskErrors(host);
  try {
    let blamed: readonly string[] = [];
    if (isVerdict) {
      recordIfPossible(host, () => {
        blamed = move.onRefused?.(error, groupsIn(error)) ?? [];
      });
    }
    const refused = isVerdict ? toJournalRefusal(error, blamed) : undefined;
    const options = { notify: 'yes', progress, forward: no, refused } as const;
    const { repeated, ...back } = await story.restore(() => restoreLink(host, story, move, options));
    const last = isVerdict && repeated === true ? notJudged(host, move, { no, before }) : error;
    return {
      ...back,
      outcome,
      problems: [problemOf(last), ...back.problems, ...restoreProblems(host)],
      blamed,
    };
  } catch (again) {
    if (isUnmoved(again) && again.facts['because'] !== 'target')
      return leaveMove(host, { story, errors: [error, again] });
    if (isDiskError(again) && activeGenerationNumber(host.paths) !== move.from)
      return stayUnmoved(host, move, { story, error, disk: again });
    return block(host, move, { story, errors: [error, toWritError(again)] });
  }
}

/**
 * The link is not where this move left it, or the lock is lost: another process decides what is active, and the link stays. The
 * journal of this move goes, or a start would act on it.
 */
function leaveMove(
  host: Host,
  { story: { cycle }, errors }: { readonly story: CycleStory; readonly errors: readonly WritError[] },
): MoveResult {
  forgetMove(host, { cycle, before: host.ledger.read() });
  return { outcome: 'failed', workers: [], problems: errors.map(problemOf), warnings: [] };
}

/** The link itself cannot move: it is moved as soon as it can, and the workers are not notified of this generation again. */
function stayUnmoved(
  host: Host,
  move: Move,
  { story, error, disk }: { readonly story: CycleStory; readonly error: WritError; readonly disk: WritError },
): MoveResult {
  noteWorkers(host, resultsIn(error));
  const bundles = move.releases.map(({ bundle }) => bundle);
  const refused = error.kind === 'rolled-back' ? { refused: toJournalRefusal(error, bundles) } : {};
  const journal = { ...backOf(host, story, move), ...refused };
  keepUnrecordedRestore(host, { journal, diskError: disk, refusal: error });
  return {
    outcome: 'failed',
    workers: [],
    problems: [problemOf(error), ...restoreProblems(host)],
    warnings: [],
  };
}

function outcomeOfNo(no: WritError): 'rolled-back' | 'deferred' | 'failed' {
  // Nobody has refused: it is taken back, and never remembered as refused.
  if (isUnsaidNo(no.code)) return 'rolled-back';
  const said = outcomeOf(no);
  return said === 'rolled-back' || said === 'deferred' ? said : 'failed';
}

/**
 * Of a command that gave no verdict, or said "not now": the same again at every poll would move the link there and back
 * each time. @returns its error, with the time of the next try; a host without another policy tries at each cycle
 */
function triedInVain(host: Host, { from, releases }: Move, no: WritError): WritError {
  const groups = groupsIn(no);
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
 * The refusal said nothing about the releases, because the generation before them was refused alike: it is remembered no
 * more. @returns REFUSAL_REPEATED, with the time of the next try
 */
function notJudged(
  host: Host,
  move: Move,
  { no, before }: { readonly no: WritError; readonly before: RefusalsDocument },
): WritError {
  recordIfPossible(host, () => undoRefusals(host, before));
  const text = `${no.message}; generation ${move.from} was refused with the same text`;
  const facts = { ...no.facts, refusedFor: no.code };
  return triedInVain(host, move, new WritError('REFUSAL_REPEATED', text, { facts, cause: no }));
}

export interface RestoreOptions {
  /** `no`: the workers stay pending and are notified apart, for the notifying is what did not come to its end. */
  readonly notify: 'yes' | 'no';
  readonly progress?: MoveProgress | undefined;
  /** The refusal of the new generation; left out where nobody refused. */
  readonly forward?: WritError;
  /** What a start has to remember where the refusals cannot be written. */
  readonly refused?: JournalRefusal | undefined;
  /** What `current` named when a recovery planned this; left out where the move itself left it. */
  readonly found?: { readonly active: number | undefined; readonly isDamageKnown: boolean };
}

/** What a way back leaves: it is complete even so, for nobody refuses. */
export type Restored = RestoredWorkers;

/** Puts the link back and notifies the workers; also the undo of a recovery. */
export async function restoreLink(
  host: Host,
  story: Pick<CycleStory, 'cycle' | 'nextNotificationId'>,
  move: Move,
  { notify, progress, forward, refused, found }: RestoreOptions,
): Promise<{ value: Restored; text: string; verdict: 'ok' | 'warn' }> {
  const { paths } = host;
  const { from, to } = move;
  const expected = found === undefined ? [to, from] : [found.active];
  const beforeRename = (): void =>
    requireMovable(host, { to: from, expected, isDamageKnown: found?.isDamageKnown });
  beforeRename();
  const journal = backOf(host, story, move);
  writeRestoreJournal(host, journal, refused);
  const end = (): void => finishRestore(host, { ...journal, ...given({ refused }) }, forward);
  const back = { left: to, current: from };
  if (from === undefined) {
    moveLinkBack(host, from, { cycle: story.cycle, beforeRename });
    host.ledger.write(withWayBack(host, withRetired(host, host.ledger.read(), back), { from, to }));
    announceActive(host.groups, undefined);
    end();
    return { value: nobody, text: `generation ${to} -> none`, verdict: 'ok' };
  }
  await touchIfPossible(host, { comingBack: from, inUse: to });
  moveLinkBack(host, from, { cycle: story.cycle, beforeRename });
  announceActive(host.groups, notificationTarget(paths, from));
  const known = withWayBack(host, withRetired(host, host.ledger.read(), back), { from, to });
  const ledger = withoutHoldsOn(known, digestsOf(readNamedReleases(paths, from)));
  host.ledger.write(wantBack(host, ledger, { ...move, from }, progress));
  const moved = `generation ${to} -> ${from}`;
  if (notify === 'no') {
    end();
    return { value: nobody, text: `${moved}; workers are notified later`, verdict: 'warn' };
  }
  const value = await notifyRestored(host, story, { ...move, from }, { progress, forward });
  const groups = move.groups.map(({ config }) => config.name);
  host.ledger.write(withRunsUnknown(host.ledger.read(), groups));
  end();
  const text = `${moved}; ${resetText(value.workers, from)}`;
  return { value, text, verdict: value.problems.length > 0 ? 'warn' : 'ok' };
}

function backOf(host: Host, story: Pick<CycleStory, 'cycle'>, move: Move): Journal {
  return { ...journalOf(host, story, move), direction: 'back' };
}

/** A flush that fails behind the rename leaves the link moved: the journal is what a start reads. */
function moveLinkBack(
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

const nobody: Restored = { workers: [], problems: [], warnings: [] };

/** What a worker said on the way back, or a probe of it: it is pending, and asked again until it is right. */
const workerCodes: ReadonlySet<ErrorCode> = new Set([
  'WORKER_REFUSED',
  'WORKER_DIED',
  'PROBE_FAILED',
  'PROBE_BROKEN',
]);

/** Even the way back failed: these releases are not tried again by themselves, and everybody who looks is told. */
function block(
  host: Host,
  move: Move,
  {
    story,
    errors: [first, again],
  }: { readonly story: CycleStory; readonly errors: readonly [WritError, WritError] },
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
    keepUnrecordedRestore(host, { journal: backOf(host, story, move), diskError: disk, refusal: first });
  const problems = [problemOf(error), problemOf(first), problemOf(again), ...restoreProblems(host)];
  return { outcome: 'blocked', workers: [], problems, warnings: [] };
}

/** @returns which generation failed, which one could not be restored, and which one is active, each with the releases of the move */
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

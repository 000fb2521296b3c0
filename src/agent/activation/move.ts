// A move of `current` as a value: its generations, its affected groups, its progress and its result. Pure functions.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import type { NewRelease } from '../../core/release/release.js';
import type { NotifyVerb } from '../../workers/contract/notify-worker.js';
import type { CycleProgress } from '../job/progress.js';
import type { NotifyContext } from '../notify/notify-context.js';
import type { VerbOf } from '../notify/worker-ledger.js';
import type { RunsObservation } from '../runs/note-runs.js';
import { countText } from '../staging/step-text.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { ContactBefore, Ledger } from '../state/ledger.js';
import { notificationTarget } from '../state/paths.js';
import type { Journal } from '../state/recovery-rules.js';
import type { RefreshBasis } from './move-rules.js';

/** One move of `current` with its consequences for workers. */
export interface Move {
  readonly kind: Journal['kind'];
  /** The generation before the move; undefined at a first activation. */
  readonly from?: number | undefined;
  readonly to: number;
  /** The affected groups, and those with a pending worker. */
  readonly groups: readonly WorkerGroup[];
  /** The releases that the move activates. A block excludes them, and a commit removes their refusals. */
  readonly releases: readonly NewRelease[];
  readonly staging: string;
  readonly signal: AbortSignal;
  /** The refresh that verified the releases of an update; left out for a move that depends on none. */
  readonly refresh?: RefreshBasis;
  /** In a recovery, the cycle of the swap that it finishes, which the journal names. */
  readonly swapCycle?: string;
  /** Adds further members to the ledger before the swap. */
  readonly ledger?: (ledger: Ledger) => Ledger;
  /**
   * Records a refusal before the restore moves the link, so that a crash cannot lose it.
   * @returns names of the refused bundles
   */
  readonly onRefused?: (error: WritError, groups: readonly string[]) => readonly string[];
}

/** The state before a move and its effects so far, which a restore needs. */
export interface MoveProgress {
  /** Keys of the workers that were alive before the swap. */
  readonly alive: ReadonlySet<string>;
  /** Epoch milliseconds immediately before the swap. */
  readonly beganAtMs: number;
  /** Process runs that were observed before the swap. The new release did not cause their ends. */
  readonly runs: RunsObservation;
  /** The entries of the workers before the move. */
  readonly before: Ledger['workers'];
  /** How each worker loads the new generation. */
  readonly verbOf: VerbOf;
  /** Left out if no contact was checked. */
  readonly contactBefore?: ContactBefore | undefined;
  /** The verb of each notified worker by its key; left out before the step `reset`. */
  notified?: Map<string, NotifyVerb>;
}

/** @returns the journal of this move in its forward direction */
export function journalOf(host: Host, steps: Pick<CycleProgress, 'cycle'>, move: Move): Journal {
  return {
    writ: 1,
    cycle: steps.cycle,
    ...(move.from === undefined ? {} : { from: move.from }),
    to: move.to,
    direction: 'forward',
    startedAtMs: host.clock.nowMs(),
    kind: move.kind,
  };
}

/**
 * @returns the context in which the workers of the move are notified
 * @param generation the generation that they must load: that of the move, or in a restore the one before it
 */
export function contextOf(
  { paths }: Pick<Host, 'paths'>,
  { nextNotificationId }: Pick<CycleProgress, 'nextNotificationId'>,
  { groups, staging, signal }: Move,
  generation: number,
): NotifyContext {
  return { groups, target: notificationTarget(paths, generation), staging, signal, nextNotificationId };
}

/** @returns a line for an operator with the number of confirmed and notified workers */
export function resetText(results: readonly WorkerResult[], generation: number): string {
  if (results.length === 0) return 'no worker to notify';
  const answered = results.filter((one) => one.state === 'confirmed').length;
  const notified = results.filter((one) => one.state === 'notified').length;
  const parts = [`${answered} of ${countText(results.length, 'worker')} confirmed generation ${generation}`];
  if (notified > 0) parts.push(`${notified} notified without an answer that proves it`);
  const missing = results
    .filter((one) => one.state === 'unreachable')
    .map((one) => `${one.worker}: ${one.text}`);
  return [...parts, ...missing].join('; ');
}

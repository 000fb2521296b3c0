// A move of `current` as a value: from where, to where, whom it affects, and how it ended. Performs nothing.
import type { WorkerResult } from '../../core/cycle/cycle-report.js';
import type { WritError } from '../../core/errors.js';
import type { NewRelease } from '../../core/release/release.js';
import type { NotifyVerb } from '../../workers/contract/notify-worker.js';
import type { CycleStory } from '../job/progress.js';
import type { NotifyContext } from '../notify/notify-context.js';
import type { VerbOf } from '../notify/worker-ledger.js';
import type { RunsLook } from '../runs/note-runs.js';
import { countText } from '../staging/step-text.js';
import type { Host, WorkerGroup } from '../state/host.js';
import type { ContactBefore, Ledger } from '../state/ledger.js';
import { notificationTarget } from '../state/paths.js';
import type { Journal } from '../state/recovery-rules.js';
import type { RefreshBasis } from './move-rules.js';

/** One move of `current` and all that follows from it. */
export interface Move {
  readonly kind: Journal['kind'];
  /** Generation; undefined at a first activation. */
  readonly from?: number | undefined;
  readonly to: number;
  /** The groups that the difference affects, or that have a worker behind. */
  readonly groups: readonly WorkerGroup[];
  /** The releases that are new with it: what a block keeps out, and what is refused no more at the commit. */
  readonly releases: readonly NewRelease[];
  readonly staging: string;
  readonly signal: AbortSignal;
  /** What verified the releases of an update; left out for a move that rests on no refresh. */
  readonly refresh?: RefreshBasis;
  /** The cycle that the journal names where it is another one: that of the swap which a recovery finishes. */
  readonly swapCycle?: string;
  /** What the ledger must hold before the link moves, beside the move itself. */
  readonly ledger?: (ledger: Ledger) => Ledger;
  /**
   * Called with the refusal before the link goes back, so that a crash cannot make it forgotten.
   * @returns names of the bundles that it falls on
   */
  readonly onRefused?: (error: WritError, groups: readonly string[]) => readonly string[];
}

/** What a move has done so far, and how it was before: what its way back must know. */
export interface MoveProgress {
  /** Workers that lived before the link moved, by their keys. */
  readonly alive: ReadonlySet<string>;
  /** Epoch milliseconds: when the link was about to move. */
  readonly beganAtMs: number;
  /** How processes of workers ended until then: the release that comes is not at fault. */
  readonly runs: RunsLook;
  /** What each was to use and had said, before. */
  readonly before: Ledger['workers'];
  /** How each takes over the new generation. */
  readonly verbOf: VerbOf;
  /** Left out where no server was asked. */
  readonly contactBefore?: ContactBefore | undefined;
  /** Who was notified so far, and how; absent as long as nobody was to be notified. */
  notified?: Map<string, NotifyVerb>;
}

/** The journal of this move on its way forward. */
export function journalOf(host: Host, story: Pick<CycleStory, 'cycle'>, move: Move): Journal {
  return {
    writ: 1,
    cycle: story.cycle,
    ...(move.from === undefined ? {} : { from: move.from }),
    to: move.to,
    direction: 'forward',
    startedAtMs: host.clock.nowMs(),
    kind: move.kind,
  };
}

export function contextOf(
  { paths }: Pick<Host, 'paths'>,
  { nextNotificationId }: Pick<CycleStory, 'nextNotificationId'>,
  { groups, staging, signal }: Move,
  generation: number,
): NotifyContext {
  return { groups, target: notificationTarget(paths, generation), staging, signal, nextNotificationId };
}

/** How many answered, in a line for people. */
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

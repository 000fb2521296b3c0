// Decides what a start does with a move that a crash left unfinished. The inputs are the journal, the facts on the disk, and
// how often this candidate crashed before (docs/ARCHITECTURE.md, Guarantees). Pure and idempotent. The disk decides, because
// the journal alone may be outdated. crash-rules identifies a candidate.

/** The record of an unfinished move; written before the link moves, removed at commit. */
export interface Journal {
  readonly writ: 1;
  readonly cycle: string;
  /** The previous generation; absent at a first activation. */
  readonly from?: number;
  readonly to: number;
  /** `forward` until a refusal; `back` during the restore. */
  readonly direction: 'forward' | 'back';
  readonly startedAtMs: number;
  /** `repair`: the same releases in new trees, or an older generation instead of a damaged one. */
  readonly kind: 'update' | 'rollback' | 'repair';
  /** A refusal that rejected.json could not take; the next start records it there. */
  readonly refused?: JournalRefusal;
}

export interface JournalRefusal {
  readonly code: string;
  readonly message: string;
  /** Names of the refused bundles. */
  readonly bundles: readonly string[];
}

/**
 * The generation that a restore activates: an intact one, or one that the same start repairs. `nothing`: no generation was
 * active before. `lost`: no such generation exists.
 */
export type RestoreTarget = number | 'nothing' | 'lost';

export interface RecoveryFacts {
  /** The generation that `current` names; absent without a link. */
  readonly current?: number;
  /** Every file of the new generation matches its signed manifest. */
  readonly isIntact: boolean;
  readonly restoreTarget: RestoreTarget;
  /** The restore target is damaged and repaired by the same start: workers must not be notified before the repair. */
  readonly isTargetDamaged?: boolean;
  /** According to the ledger this move was committed. */
  readonly isCommitted: boolean;
  /** The restore failed without a crash, and the ledger already blocks its releases. */
  readonly isBlocked?: boolean;
}

export type RecoveryPlan =
  /** No move was unfinished. */
  | { readonly action: 'none' }
  /** The link did not move, so no worker was notified: remove the journal. */
  | { readonly action: 'discard' }
  /** The move was committed: only remove the journal, because workers that confirmed need no second notification. */
  | { readonly action: 'clear' }
  /** The link moved: notify the workers, then commit. */
  | { readonly action: 'finish' }
  /** Move the link to `to` (or remove it), then notify the workers. Without `shouldNotify` they stay pending. */
  | {
      readonly action: 'undo';
      readonly to: Exclude<RestoreTarget, 'lost'>;
      /** Whether to block the releases of the candidate. */
      readonly shouldBlock: boolean;
      readonly shouldNotify: boolean;
    }
  /** No generation is intact: the link stays, and a problem asks for an operator. */
  | { readonly action: 'stay'; readonly shouldBlock: boolean };

/** How often a candidate may crash after its swap, the first crash included, before its releases are blocked. */
export const maxCrashes = 3;

/**
 * After the first crash the move continues forward, after the second it is undone, after the third the candidate is also
 * blocked. If that restore crashes too, the next one does not notify workers: the notification may be what crashes the host,
 * and a start must come to an end.
 * @param journal undefined if no move was unfinished
 * @param crashes how often this candidate crashed before the crash that this start found
 */
export function planRecovery(
  journal: Journal | undefined,
  facts: RecoveryFacts,
  crashes: number,
): RecoveryPlan {
  if (journal === undefined) return { action: 'none' };
  const linkMoved = facts.current === journal.to;
  const isForward = journal.direction === 'forward';
  if (isForward && !linkMoved) return { action: 'discard' };
  if (isForward && facts.isCommitted) return { action: 'clear' };
  if (isForward && crashes === 0 && facts.isIntact) return { action: 'finish' };
  const shouldBlock = facts.isBlocked === true || (hasNewGeneration(journal) && crashes + 1 >= maxCrashes);
  if (facts.restoreTarget === 'lost') return { action: 'stay', shouldBlock };
  // Also when the link is at its target already: the crash may have come before the notification.
  const shouldNotify = !(crashes >= maxCrashes || facts.isTargetDamaged === true);
  return { action: 'undo', to: facts.restoreTarget, shouldBlock, shouldNotify };
}

/** False if only notifications of the active generation are pending: a block would hit the policy in use. */
function hasNewGeneration({ from, to }: Journal): boolean {
  return from !== to;
}

/** The cycle id of a rebuilt journal: no real cycle has it. */
export const rebuiltJournalCycle = 'c-0';

/**
 * Rebuilds a journal that cannot be read, from the link and the ledger.
 * @param active the generation that `current` names
 * @param lastKnownGood the member of the ledger: the generation of the last committed move
 * @returns undefined if no generation is active, because then no swap can be unfinished
 */
export function rebuildJournal(active: number | undefined, lastKnownGood?: number): Journal | undefined {
  if (active === undefined) return undefined;
  const base = { writ: 1, cycle: rebuiltJournalCycle, to: active, startedAtMs: 0, kind: 'update' } as const;
  // The link is where the last commit left it. It is unknown which workers were notified, so all are notified again.
  if (active === lastKnownGood) return { ...base, from: active, direction: 'back' };
  const from = lastKnownGood === undefined ? {} : { from: lastKnownGood };
  return { ...base, ...from, direction: 'forward' };
}

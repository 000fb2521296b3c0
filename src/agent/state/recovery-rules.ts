// What to do with a swap that a crash left unfinished: a table over what the journal says, what is really on disk and
// how often this candidate has crashed (docs/ARCHITECTURE.md, Guarantees). Pure and idempotent; the record alone
// is never believed. How a candidate is known again is crash-count's.

/** The swap in flight; written before the link moves, cleared at commit. */
export interface Journal {
  readonly writ: 1;
  readonly cycle: string;
  /** Absent at a first activation. */
  readonly from?: number;
  readonly to: number;
  /** `forward` until somebody refused; then the link goes back. */
  readonly direction: 'forward' | 'back';
  readonly startedAtMs: number;
  /** `repair`: the same releases in new trees, or an older generation in place of a damaged one. */
  readonly kind: 'update' | 'rollback' | 'repair';
  /** A refusal that could be written nowhere else: the start that reads it remembers it. */
  readonly refused?: JournalRefusal;
}

export interface JournalRefusal {
  readonly code: string;
  readonly message: string;
  /** Names of the bundles that it falls on. */
  readonly bundles: readonly string[];
}

/**
 * Where the way back leads: a generation that is complete or that the same start repairs, `nothing` before a first activation,
 * `lost` when there is none.
 */
export type WayBack = number | 'nothing' | 'lost';

export interface DiskFacts {
  /** What `current` names; absent when there is no link. */
  readonly current?: number;
  /** Every file of the journal's new generation is there as it was signed. */
  readonly isWhole: boolean;
  readonly back: WayBack;
  /** The way back leads to a damaged generation that the same start makes again: nobody is notified of it as it is. */
  readonly isBackDamaged?: boolean;
  /** The ledger says that this very move reached its commit. */
  readonly isCommitted: boolean;
  /** The restore failed without a crash: the ledger blocks its releases already. */
  readonly isBlocked?: boolean;
}

export type RecoveryPlan =
  /** No swap was in flight. */
  | { readonly action: 'none' }
  /** The link never moved: forget the swap, nobody was notified. */
  | { readonly action: 'discard' }
  /** Everything was done except for clearing the journal: workers that said yes are not asked again. */
  | { readonly action: 'clear' }
  /** The link moved: notify the workers, then commit. */
  | { readonly action: 'finish' }
  /** Put the link to `to` (or remove it), then notify the workers; `notify: 'no'` leaves them pending instead. */
  | {
      readonly action: 'undo';
      readonly to: Exclude<WayBack, 'lost'>;
      readonly block: 'yes' | 'no';
      readonly notify: 'yes' | 'no';
    }
  /** Nothing is complete: the link stays where it is, and a person is told what to do. */
  | { readonly action: 'stay'; readonly block: 'yes' | 'no' };

/** Unfinished attempts of one candidate after its swap, the first included, before activation is blocked. */
export const maxCrashes = 3;

/**
 * Forward once; a second crash goes back; at the third the candidate is blocked. If even that way back crashes, it is
 * walked once more without notifying anybody: the notifying is what may bring the host down, and a start must end.
 * @param journal undefined when there is none
 * @param crashes of this candidate before the one that this start found
 */
export function planRecovery(journal: Journal | undefined, facts: DiskFacts, crashes: number): RecoveryPlan {
  if (journal === undefined) return { action: 'none' };
  const linkMoved = facts.current === journal.to;
  const isForward = journal.direction === 'forward';
  if (isForward && !linkMoved) return { action: 'discard' };
  if (isForward && facts.isCommitted) return { action: 'clear' };
  if (isForward && crashes === 0 && facts.isWhole) return { action: 'finish' };
  const isBlocked = facts.isBlocked === true || (isMove(journal) && crashes + 1 >= maxCrashes);
  const block = isBlocked ? 'yes' : 'no';
  if (facts.back === 'lost') return { action: 'stay', block };
  // `back` with the link at its end: the undo had reached the link, the workers may not know it yet.
  const notify = crashes >= maxCrashes || facts.isBackDamaged === true ? 'no' : 'yes';
  return { action: 'undo', to: facts.back, block, notify };
}

/** Nothing new is on trial where only the notifying of what is active is pending: a block would hit the policy in use. */
function isMove({ from, to }: Journal): boolean {
  return from !== to;
}

/** Of a journal that was made again: no cycle that anybody ran. */
export const unknownCycle = 'c-0';

/**
 * What a journal that cannot be read must have said, as far as the disk and the ledger show it.
 * @param active what `current` names
 * @param lastKnownGood of the ledger: what the last move that was committed went to
 * @returns undefined when nothing is active, so that nothing can be in flight behind a link
 */
export function rebuildJournal(active: number | undefined, lastKnownGood?: number): Journal | undefined {
  if (active === undefined) return undefined;
  const base = { writ: 1, cycle: unknownCycle, to: active, startedAtMs: 0, kind: 'update' } as const;
  // The link is where the last commit left it: which way it came back, and who was notified, nobody knows.
  if (active === lastKnownGood) return { ...base, from: active, direction: 'back' };
  const from = lastKnownGood === undefined ? {} : { from: lastKnownGood };
  return { ...base, ...from, direction: 'forward' };
}

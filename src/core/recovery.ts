// What to do with a swap that a crash left unfinished: a table over what the journal says and what is really
// on disk (docs/ARCHITECTURE.md, Guarantees). Pure and idempotent; the record alone is never believed.

/** The swap in flight; written before the link moves, cleared at commit. */
export interface Journal {
  readonly writ: 1;
  readonly cycle: string;
  /** Absent at a first activation. */
  readonly from?: number;
  readonly to: number;
  /** `forward` until somebody said no; then the link goes back. */
  readonly direction: 'forward' | 'back';
  /** Starts behind this swap that did not reach its end. */
  readonly attempts: number;
  readonly startedAtMs: number;
  readonly kind: 'update' | 'rollback';
}

export interface DiskFacts {
  /** What `current` names; absent when there is no link. */
  readonly current?: number;
  /** The generations of the journal that can be read whole. */
  readonly readable: readonly number[];
}

export type RecoveryPlan =
  /** No swap was in flight. */
  | { readonly action: 'none' }
  /** The link never moved (or is back already): forget the swap, nobody was told. */
  | { readonly action: 'discard' }
  /** The link moved: tell the workers, then commit. */
  | { readonly action: 'finish' }
  /** Put the link back to `from` (or remove it), then tell the workers. */
  | { readonly action: 'undo'; readonly block: 'yes' | 'no' };

/** Unfinished attempts of one candidate after its swap before activation is blocked. */
export const maxAttempts = 3;

/**
 * Forward once; a second crash in the same place goes back; after the third nothing is tried any more.
 * @param journal undefined when there is none
 */
export function planRecovery(journal: Journal | undefined, facts: DiskFacts): RecoveryPlan {
  if (journal === undefined) return { action: 'none' };
  const linkMoved = facts.current === journal.to;
  if (!linkMoved) {
    // `back` with the link at `from`: the undo had reached the link, the workers may not know it yet.
    return journal.direction === 'back'
      ? { action: 'undo', block: blockAfter(journal) }
      : { action: 'discard' };
  }
  const mayGoForward =
    journal.direction === 'forward' && journal.attempts < 1 && facts.readable.includes(journal.to);
  return mayGoForward ? { action: 'finish' } : { action: 'undo', block: blockAfter(journal) };
}

function blockAfter(journal: Journal): 'yes' | 'no' {
  return journal.attempts + 1 >= maxAttempts ? 'yes' : 'no';
}

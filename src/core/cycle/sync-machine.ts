// The cycle as a machine: its steps, its states as types and its one transition table (docs/ARCHITECTURE.md,
// The cycle). Pure: sync-cycle performs the steps and is the only caller. Never knows how a step is done.
//
//   refresh -> select -> fetch -> stage -> verify -> check -> canary -> flush -> swap
//      |          |        (any step before swap -> ended, the active policy untouched; after fetch also: select again)
//      `-> ended (unchanged)          swap -> load -> reset -> probe -> commit -> ended
//                                        `------`-------`---> restore: the end (rolled-back), or select
//                                                             again without the refused bundles; an outdated swap: refresh

export const steps = [
  'refresh',
  'select',
  'fetch',
  'stage',
  'verify',
  'check',
  'canary',
  'flush',
  'swap',
  'load',
  'reset',
  'probe',
  'commit',
] as const;

export type Step = (typeof steps)[number];

/** What a cycle can come to, with its exit code, as the README has them. */
export const exitCodeOfOutcome = {
  unchanged: 0,
  activated: 0,
  degraded: 4,
  rejected: 3,
  'rolled-back': 5,
  failed: 1,
  deferred: 8,
  blocked: 6,
} as const;

/** Of `activated` where an older policy was replaced and a notified worker did not prove the new one. */
export const unprovenExitCode = exitCodeOfOutcome.degraded;

export type Outcome = keyof typeof exitCodeOfOutcome;
export const outcomes = Object.keys(exitCodeOfOutcome) as readonly Outcome[];

/** The worst result of several bundles is the cycle's (last wins). */
const severity: readonly Outcome[] = [
  'unchanged',
  'activated',
  'deferred',
  'degraded',
  'failed',
  'rejected',
  'rolled-back',
  'blocked',
];

/** @returns the worst of the outcomes; `unchanged` for none. */
export function worstOutcome(all: readonly Outcome[]): Outcome {
  return all.reduce(
    (worst, one) => (severity.indexOf(one) > severity.indexOf(worst) ? one : worst),
    'unchanged',
  );
}

export type CycleState =
  | { readonly name: 'running'; readonly step: Step }
  /** The swap has happened and somebody refused: the previous generation goes back. */
  | { readonly name: 'restoring'; readonly after: Step }
  | { readonly name: 'ended'; readonly outcome: Outcome };

export type CycleEvent =
  | { readonly type: 'done' }
  /**
   * `nothing` is left to do: no new release, or every new one was refused before the swap. `stopped`: the step refused,
   * or could not be done.
   */
  | { readonly type: 'nothing' | 'stopped'; readonly outcome: Outcome }
  /**
   * Releases are selected again: the previous generation is back, and other bundles than the refused ones are tried without
   * them; or what was fetched is not wanted any more.
   */
  | { readonly type: 'retried' }
  /** The host or the metadata is no longer what the swap was planned from: nothing was moved, and the cycle begins again. */
  | { readonly type: 'outdated' };

/** True for an end with the new policy in use, whether or not everybody was notified. */
export function isActivation(outcome: Outcome): boolean {
  return outcome === 'activated' || outcome === 'degraded';
}

/**
 * @returns true where the cycle made the release of a bundle active. One that waits after a refusal of everything is `degraded`
 * as well, and has the problem that keeps it out
 */
export function isNowActive(bundle: { readonly outcome: Outcome; readonly problem?: unknown }): boolean {
  return isActivation(bundle.outcome) && bundle.problem === undefined;
}

/** Where a cycle begins. */
export const firstStep: Step = 'refresh';

/** Steps after the commit point: a no puts the previous generation back. */
const afterSwap: ReadonlySet<Step> = new Set(['swap', 'load', 'reset', 'probe']);

/**
 * The transition table. An event that does not fit its state is a bug of the caller and is returned as
 * undefined, never guessed.
 */
export function transition(state: CycleState, event: CycleEvent): CycleState | undefined {
  if (state.name === 'ended') return undefined;
  if (state.name === 'restoring')
    return event.type === 'retried' ? { name: 'running', step: 'select' } : undefined;
  const { step } = state;
  switch (event.type) {
    case 'done':
      return next(step);
    case 'nothing':
      return afterSwap.has(step) || step === 'commit' ? undefined : { name: 'ended', outcome: event.outcome };
    case 'stopped':
      if (afterSwap.has(step)) return { name: 'restoring', after: step };
      return { name: 'ended', outcome: event.outcome };
    case 'outdated':
      return step === 'swap' ? { name: 'running', step: firstStep } : undefined;
    case 'retried':
      return step === 'stage' ? { name: 'running', step: 'select' } : undefined;
  }
}

function next(step: Step): CycleState {
  const following = steps[steps.indexOf(step) + 1];
  return following === undefined
    ? { name: 'ended', outcome: 'activated' }
    : { name: 'running', step: following };
}

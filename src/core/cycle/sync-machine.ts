// The cycle as a state machine: its steps, its states and its transition table (docs/ARCHITECTURE.md,
// The cycle). Pure: sync-cycle.ts performs the steps and is the only caller.
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

/** The outcomes of a cycle with their exit codes, as in the README. */
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

/** Exit code of `activated` if it replaced an older policy and a notified worker did not confirm the new one. */
export const unprovenExitCode = exitCodeOfOutcome.degraded;

export type Outcome = keyof typeof exitCodeOfOutcome;
export const outcomes = Object.keys(exitCodeOfOutcome) as readonly Outcome[];

/** From best to worst: the outcome of a cycle is the worst one of its bundles. */
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

/** @returns the worst of the outcomes; `unchanged` for an empty list */
export function worstOutcome(all: readonly Outcome[]): Outcome {
  return all.reduce(
    (worst, one) => (severity.indexOf(one) > severity.indexOf(worst) ? one : worst),
    'unchanged',
  );
}

export type CycleState =
  | { readonly name: 'running'; readonly step: Step }
  /** A step after the swap refused or failed: the previous generation is restored. */
  | { readonly name: 'restoring'; readonly after: Step }
  | { readonly name: 'ended'; readonly outcome: Outcome };

export type CycleEvent =
  | { readonly type: 'done' }
  /**
   * `nothing`: nothing is left to do, because there is no new release, or each was refused before the swap. `stopped`: the step
   * refused or failed.
   */
  | { readonly type: 'nothing' | 'stopped'; readonly outcome: Outcome }
  /**
   * Releases are selected again. Either the previous generation was restored, and the cycle tries the bundles that were not refused.
   * Or the fetched releases are not wanted any more.
   */
  | { readonly type: 'retried' }
  /** The host or the metadata changed since the swap was planned: nothing was moved, and the cycle starts again. */
  | { readonly type: 'outdated' };

/** @returns true if the new policy is active, whether or not all workers were notified */
export function isActivation(outcome: Outcome): boolean {
  return outcome === 'activated' || outcome === 'degraded';
}

/**
 * @returns true if the cycle activated the release of the bundle. A bundle that waits because every release was refused is
 *   `degraded` too, but has a problem.
 */
export function isNowActive(bundle: { readonly outcome: Outcome; readonly problem?: unknown }): boolean {
  return isActivation(bundle.outcome) && bundle.problem === undefined;
}

/** The first step of a cycle. */
export const firstStep: Step = 'refresh';

/** Steps after the commit point: if one of them stops, the previous generation is restored. */
const afterSwap: ReadonlySet<Step> = new Set(['swap', 'load', 'reset', 'probe']);

/**
 * The transition table.
 * @returns undefined for an event that is invalid in this state, which is a bug of the caller
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

// What a cycle does with the candidate that its checks let through: whether it is worth a swap at all, its place on the
// public side, and the move. Owns the order of these; each of them is another file's.
import { performMove } from '../activation/activate.js';
import { placeCandidate, planMove } from '../activation/place-candidate.js';
import type { ActivePolicy } from '../generations/generation-contents.js';
import { type ForcedRepair, planForcedRepair } from '../integrity/repair-by-force.js';
import { keepRecords, planRepair } from '../integrity/repair-plan.js';
import type { MoveResult } from '../job/cycle-result.js';
import type { CycleStory } from '../job/progress.js';
import { type CandidateBundle, type StagingOptions, sameContent } from '../staging/candidate.js';
import type { StagedBundle } from '../staging/stage-bundle.js';
import type { Host } from '../state/host.js';

export type SwapDecision =
  /** `damaged`: names of the bundles whose tree is new because the one in use is not whole. */
  | { readonly kind: 'update'; readonly damaged: readonly string[] }
  | { readonly kind: 'repair'; readonly repair: ForcedRepair }
  /** `records`: releases of which only what is kept is damaged. */
  | { readonly kind: 'none'; readonly records: readonly StagedBundle[] };

export interface Candidate {
  readonly active: ActivePolicy | undefined;
  readonly bundles: readonly CandidateBundle[];
  readonly force: 'yes' | 'no';
  readonly signal: AbortSignal;
}

/**
 * Decides what follows from a candidate; writes nothing.
 * @throws WritError INTERRUPTED, DISK_*
 */
export async function decideSwap(
  host: Host,
  { active, bundles, force, signal }: Candidate,
): Promise<SwapDecision> {
  const repair = force === 'yes' ? await planForcedRepair(host, bundles, signal) : undefined;
  const records = repair?.records ?? [];
  // Damage is no reason to swap to a generation without a bundle.
  if (bundles.length === 0) return { kind: 'none', records };
  if (!sameContent(bundles, active)) return { kind: 'update', damaged: repair?.replaced ?? [] };
  return repair?.needsSwap === 'yes' ? { kind: 'repair', repair } : { kind: 'none', records };
}

export interface Swap extends Pick<Candidate, 'active' | 'bundles'> {
  readonly decision: Exclude<SwapDecision, { kind: 'none' }>;
  /** The number that the new generation gets. */
  readonly generation: number;
  readonly options: StagingOptions;
}

export interface Swapped {
  readonly result: MoveResult;
  /** Bundles that a worker's refusal falls on. */
  readonly blamed: readonly string[];
}

/**
 * The steps from flush to commit. Never rejects for what workers say.
 * @throws WritError DISK_*: before the swap nothing that workers can see was touched
 */
export async function swapCandidate(host: Host, story: CycleStory, swap: Swap): Promise<Swapped> {
  const { decision, active, bundles, generation, options } = swap;
  const placed = await story.step('flush', async () => {
    const trees = decision.kind === 'repair' ? decision.repair.candidate : bundles;
    const value = await placeCandidate(host, trees, { ...options, generation });
    if (decision.kind === 'repair') keepRecords(host, decision.repair.records, options.staging);
    return { value, text: `generation ${generation}` };
  });
  let blamed: readonly string[] = [];
  const onBlamed = (names: readonly string[]): void => {
    blamed = names;
  };
  const move =
    decision.kind === 'repair'
      ? planRepair(host, { ...options, ...decision.repair, to: placed })
      : planMove(host, {
          ...options,
          active,
          candidate: bundles,
          damaged: decision.damaged,
          placed,
          onBlamed,
        });
  return { result: await performMove(host, story, move), blamed };
}

// The proof that a master process has reloaded, as nginx does: every process that served before the signal is gone
// or drains its last connections, and new ones are there. A master that refuses its new configuration keeps its
// children. Only looks; never signals.

import { childrenOf, findProcess, isDraining, type ProcessInfo } from '../../platform/process/processes.js';
import type { Clock } from '../../platform/time/clock.js';

export type Replacement =
  | { readonly kind: 'replaced'; readonly count: number }
  /** `left` of `count` still serve as before. */
  | { readonly kind: 'kept'; readonly left: number; readonly count: number }
  | { readonly kind: 'died' };

export interface WatchOptions {
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal;
}

const lookAgainMs = 50;

/** @param before the children that the master had before it was told */
export async function watchReplacement(
  master: ProcessInfo,
  before: readonly ProcessInfo[],
  { timeoutMs, clock, signal }: WatchOptions,
): Promise<Replacement> {
  const endMs = clock.monotonicMs() + timeoutMs;
  for (;;) {
    if (!isSame(master)) return { kind: 'died' };
    const left = before.filter(serves).length;
    // None of those before serves any more: one that does is new.
    if (left === 0 && childrenOf(master.pid).some(serves)) return { kind: 'replaced', count: before.length };
    if (clock.monotonicMs() >= endMs || signal?.aborted === true)
      return { kind: 'kept', left, count: before.length };
    await clock.sleep(lookAgainMs, signal);
  }
}

function isSame({ pid, startTicks }: ProcessInfo): boolean {
  return findProcess(pid)?.startTicks === startTicks;
}

function serves(one: ProcessInfo): boolean {
  return isSame(one) && !isDraining(one.pid);
}

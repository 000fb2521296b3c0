// A timer of the program under test that expires when a test chooses, for deadlines without a Clock. It holds only timers of one
// delay; others run normally.
import type { TestContext } from 'node:test';
import { until } from '../assert/until.js';

export interface HeldTimer {
  /** Waits until a timer with this delay is set, and expires the last one. */
  fire(): Promise<void>;
}

/**
 * @param delayMs of the held timers, which no other code in the process uses
 * @example const deadline = heldTimer(t, 600_001); await peerIsReady; await deadline.fire();
 */
export function heldTimer(t: TestContext, delayMs: number): HeldTimer {
  const { setTimeout } = globalThis;
  const held: (() => void)[] = [];
  const set = (act: (...given: unknown[]) => void, ofMs?: number, ...given: unknown[]): NodeJS.Timeout => {
    if (ofMs === delayMs) held.push(() => act(...given));
    return setTimeout(act, ofMs, ...given);
  };
  t.mock.method(globalThis, 'setTimeout', set as typeof setTimeout);
  return {
    fire: async () => {
      await until(() => held.length > 0);
      held.at(-1)?.();
    },
  };
}

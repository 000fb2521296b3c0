// Measures the duration of each step of a command. Prints nothing.
import type { Clock } from '../../platform/time/clock.js';

/**
 * Measures steps by their names, in sequence. start() begins a step and ends the step before; stop() gives the milliseconds of a
 * step, undefined if it never began.
 */
export function stopwatch(clock: Clock) {
  const spentMs = new Map<string, number>();
  let running: { readonly step: string; readonly sinceMs: number } | undefined;
  const pause = (): void => {
    if (running === undefined) return;
    const { step, sinceMs } = running;
    spentMs.set(step, (spentMs.get(step) ?? 0) + clock.monotonicMs() - sinceMs);
    running = undefined;
  };
  return {
    /** Begins a step. Steps are sequential, so this ends the time of the previous one, even if its end is printed later. */
    start: (step: string): void => {
      if (running?.step === step) return;
      pause();
      running = { step, sinceMs: clock.monotonicMs() };
    },
    /** @returns milliseconds that this step took; undefined when it never began */
    stop: (step: string): number | undefined => {
      if (running?.step === step) pause();
      const spent = spentMs.get(step);
      spentMs.delete(step);
      return spent;
    },
  };
}

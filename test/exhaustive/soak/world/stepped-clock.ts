// Loaded before the program by `node --import`: moves its wall clock ahead by the milliseconds in the file WRIT_SOAK_CLOCK,
// and follows each change of the file, like a step of the clock under a running program. Monotonic time and timers stay
// unchanged, as they do when a machine's clock is set.
import { readFileSync } from 'node:fs';

const file = process.env['WRIT_SOAK_CLOCK'] ?? '';
const readEveryMs = 200;
const RealDate = Date;
let shiftMs = 0;
let lastReadMs = Number.NEGATIVE_INFINITY;

function shift(): number {
  const nowMs = performance.now();
  if (nowMs - lastReadMs < readEveryMs) return shiftMs;
  lastReadMs = nowMs;
  try {
    shiftMs = Number(readFileSync(file, 'utf8')) || 0;
  } catch {
    shiftMs = 0;
  }
  return shiftMs;
}

class SteppedDate extends RealDate {
  constructor(...given: readonly unknown[]) {
    if (given.length === 0) super(SteppedDate.now());
    else super(...(given as [number]));
  }

  static override now(): number {
    return RealDate.now() + shift();
  }
}

globalThis.Date = SteppedDate as DateConstructor;

// Loaded before the program by `node --import`: its wall clock goes ahead by the milliseconds that the file
// WRIT_SOAK_CLOCK says, and follows when the file is changed: a step of the clock of a program that runs. Monotonic
// time and timers stay as they are, as they do when a machine's clock is set.
import { readFileSync } from 'node:fs';

const file = process.env['WRIT_SOAK_CLOCK'] ?? '';
const lookEveryMs = 200;
const RealDate = Date;
let shiftMs = 0;
let lookedAtMs = Number.NEGATIVE_INFINITY;

function shift(): number {
  const nowMs = performance.now();
  if (nowMs - lookedAtMs < lookEveryMs) return shiftMs;
  lookedAtMs = nowMs;
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

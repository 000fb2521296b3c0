// Loaded before the program by `node --import`: makes its wall clock go ahead by WRIT_TEST_SHIFT_MS, so that a command
// can be run next year. Monotonic time and timers stay as they are, as they would on a machine that was off.
const shiftMs = Number(process.env['WRIT_TEST_SHIFT_MS'] ?? '0');
const RealDate = Date;

class ShiftedDate extends RealDate {
  constructor(...given: readonly unknown[]) {
    if (given.length === 0) super(ShiftedDate.now());
    else super(...(given as [number]));
  }

  static override now(): number {
    return RealDate.now() + shiftMs;
  }
}

globalThis.Date = ShiftedDate as DateConstructor;

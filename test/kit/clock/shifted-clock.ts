// Preloaded with `node --import`: adds WRIT_TEST_SHIFT_MS to the wall clock, so that a command runs as in the next year.
// Monotonic time and timers are unchanged, as on a machine that was off.
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

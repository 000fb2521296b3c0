// Whether the time of some work grows with its input or with the square of it. Sixteen times the input: what grows with it takes
// about 16 times the time, a square 256 times, and the bound of 64 lies as far from one as from the other, so that neither
// the collector of memory nor a slow machine decides. Time of the processor: what others do here is left out.
import assert from 'node:assert/strict';

const maxFactor = 64;
/** What takes less is not measured: the clock of the processor has steps of a millisecond and more. */
const leastMs = 2;

/**
 * @param count parts of an input that takes some milliseconds; measured are a quarter of it and four times as much
 * @param workOn makes an input of so many parts, and returns the work on it
 * @throws AssertionError when none of the runs keeps the bound
 */
export function assertNoSquare(count: number, workOn: (parts: number) => () => unknown): void {
  const [few, many] = [workOn(Math.ceil(count / 4)), workOn(4 * count)];
  cpuMs(few);
  const littleMs = Math.min(...Array.from({ length: 5 }, () => cpuMs(few)));
  const maxMs = maxFactor * Math.max(littleMs, leastMs);
  const seen: number[] = [];
  // What keeps the bound does so at least once, whatever the collector does at the other times.
  while (seen.length < 5) {
    const muchMs = cpuMs(many);
    if (muchMs <= maxMs) return;
    seen.push(muchMs);
  }
  assert.fail(`${littleMs} ms, then ${Math.min(...seen)} ms`);
}

function cpuMs(act: () => unknown): number {
  const before = process.cpuUsage();
  act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

// Measures whether the time of some work is linear or quadratic in its input. For sixteen times the input, linear work takes
// about 16 times as long, quadratic work 256 times. The bound of 64 is equally far from both, so that garbage collection and
// a slow machine do not matter. It measures processor time, which excludes other processes.
import assert from 'node:assert/strict';

const maxFactor = 64;
/** The shortest time that is measured: the processor clock has steps of a millisecond and more. */
const leastMs = 2;

/**
 * @param count parts of an input that takes some milliseconds; a quarter of it and four times as many are measured
 * @param workOn makes an input of that many parts, and returns the work on it
 * @throws AssertionError if all five runs exceed the bound
 */
export function assertNoSquare(count: number, workOn: (parts: number) => () => unknown): void {
  const [few, many] = [workOn(Math.ceil(count / 4)), workOn(4 * count)];
  cpuMs(few);
  const littleMs = Math.min(...Array.from({ length: 5 }, () => cpuMs(few)));
  const maxMs = maxFactor * Math.max(littleMs, leastMs);
  const seen: number[] = [];
  // One run within the bound suffices, because garbage collection may slow the others.
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

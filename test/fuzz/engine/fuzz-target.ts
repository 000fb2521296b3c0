// The loop: changes what got somewhere, looks whether the change reached code that nothing reached before, and goes on from
// there. Ends at its bound, or at the first fault, with the input that shows it. Writes nothing.
import { performance } from 'node:perf_hooks';
import { seeded } from '../../kit/assert/seeded.js';
import { changeInput, maxInputBytes } from './change-input.js';
import type { Coverage } from './coverage.js';
import type { Target } from './target.js';

export interface FuzzBound {
  readonly maxRuns?: number;
  readonly maxMs?: number;
}

export interface FuzzResult {
  readonly runs: number;
  /** What reached something new, in the order in which it was found; without the seeds. */
  readonly found: readonly Buffer[];
  readonly fault?: { readonly input: Buffer; readonly error: unknown };
}

export interface FuzzOptions {
  readonly seed: number;
  readonly bound: FuzzBound;
  /** Left out: what an input reaches is not looked at. */
  readonly coverage?: Coverage;
  /** Beside the seeds of the target. */
  readonly corpus?: readonly Buffer[];
}

/** So many inputs are tried between two looks, as one takes as long as a hundred inputs. */
const batchSize = 32;
/** Of this process, for one input of at most maxInputBytes: what takes longer can be made to hang. */
const maxCpuMs = 2000;

export async function fuzzTarget(target: Target, options: FuzzOptions): Promise<FuzzResult> {
  const { seed, bound, coverage, corpus = [] } = options;
  const random = seeded(seed);
  const endMs = performance.now() + (bound.maxMs ?? Number.POSITIVE_INFINITY);
  const { maxRuns = Number.POSITIVE_INFINITY } = bound;
  const pool = [...target.seeds, ...corpus].map((input) => input.subarray(0, maxInputBytes));
  const found: Buffer[] = [];
  let runs = 0;
  let last: Buffer = Buffer.alloc(0);
  // What is thrown behind the back of a target would end the process, and its input with it.
  const crash = new AbortController();
  const onCrash = (error: unknown): void => crash.abort(error);
  process.on('uncaughtException', onCrash);
  const run = async (input: Buffer): Promise<void> => {
    last = input;
    runs += 1;
    const before = process.cpuUsage();
    const checked = target.check(input);
    if (checked !== undefined) {
      await checked;
      return crash.signal.throwIfAborted();
    }
    const { user, system } = process.cpuUsage(before);
    if (user + system > maxCpuMs * 1000) throw new Error(`it took ${(user + system) / 1000} ms`);
  };
  // What was found last is where the way goes on; the seeds are where all is still right.
  const begin = (): Buffer => {
    if (target.make !== undefined && random.once(4)) return target.make(random);
    return random.pick(random.pick([pool, pool.slice(-8), target.seeds]));
  };
  const change = (): Buffer => {
    const { words, repair, reshape } = target;
    if (reshape !== undefined && random.once(2)) return reshape(begin(), random);
    const changed = changeInput(begin(), { random, words, other: random.pick(pool) });
    return repair === undefined || random.once(4) ? changed : repair(changed);
  };
  try {
    for (const input of pool) await run(input);
    coverage?.hasNew();
    while (runs < maxRuns && performance.now() < endMs) {
      const batch = Array.from({ length: batchSize }, change);
      for (const input of batch) await run(input);
      if (coverage?.showsNew() !== true) continue;
      for (const input of batch) {
        await run(input);
        if (!coverage.hasNew()) continue;
        found.push(input);
        pool.push(input);
      }
    }
    return { runs, found };
  } catch (error) {
    return { runs, found, fault: { input: last, error } };
  } finally {
    process.off('uncaughtException', onCrash);
  }
}

// The loop of the fuzzer: it changes an input that reached new code, tests whether the change reaches more, and continues from
// there. It ends at its bound, or at the first fault, and returns the input of the fault. Writes nothing.
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
  /** Inputs that reached new code, in order, without the seeds. */
  readonly found: readonly Buffer[];
  readonly fault?: { readonly input: Buffer; readonly error: unknown };
}

export interface FuzzOptions {
  readonly seed: number;
  readonly bound: FuzzBound;
  /** Undefined: the coverage of inputs is not measured. */
  readonly coverage?: Coverage;
  /** Inputs in addition to the seeds of the target. */
  readonly corpus?: readonly Buffer[];
}

/** Number of inputs between two reads of the coverage, because one read takes as long as a hundred inputs. */
const batchSize = 32;
/**
 * Processor time for one input of at most maxInputBytes; a longer time is a fault, because a larger input would block a
 * process.
 */
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
  // Catches errors outside the target's call, which would end the process before the input is stored.
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
  // Prefers the newest inputs, which reached most; the seeds are correct inputs.
  const begin = (): Buffer => {
    if (target.make !== undefined && random.once(4)) return target.make(random);
    return random.pick(random.pick([pool, pool.slice(-8), target.seeds]));
  };
  const change = (): Buffer => {
    const { tokens, repair, reshape } = target;
    if (reshape !== undefined && random.once(2)) return reshape(begin(), random);
    const changed = changeInput(begin(), { random, tokens, other: random.pick(pool) });
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

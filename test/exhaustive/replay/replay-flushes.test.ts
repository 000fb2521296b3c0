// Checks the replay itself: with one flush removed from a recorded cycle it must find a state that breaks the invariant. A new
// flush, or one that breaks nothing any more, is reported by name.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sampled } from '../../kit/assert/sample.js';
import { seeded, testSeed } from '../../kit/assert/seeded.js';
import { needs } from '../../kit/programs/real-programs.js';
import { claimsAbout, judgeFlush, knownStates, type RecordedFlush } from './flush-removal.js';
import { recordCycle } from './record-cycle.js';
import { replayCycles } from './replay-cycles.js';

/** Together these cycles have every kind of flush. */
const cycles = ['first start', 'update', 'rollback', 'new keys and no new release'];

describe('without a flush', needs('strace', 'strace'), () => {
  for (const cycle of sampled(replayCycles.filter(({ name }) => cycles.includes(name)))) {
    it(`that is needed, a power cut breaks the promise: ${cycle.name}`, async (context) => {
      using recorded = await recordCycle(cycle);
      const common = { random: seeded(testSeed()), subsets: 1, alike: 'swept' } as const;
      const known = knownStates(recorded, { ...common, subsets: 3 });
      const { each, oneOf } = claimsAbout(recorded);
      assert.ok(each.length + oneOf.length >= 2);
      const survived: string[] = [];
      const isNeeded = async (flush: RecordedFlush): Promise<boolean> =>
        (await judgeFlush(recorded, flush, { ...common, known })).violation !== undefined;
      for (const flush of each) if (!(await isNeeded(flush))) survived.push(flush.name);
      for (const group of oneOf) if (!(await some(group, isNeeded))) survived.push(`each of ${group.length}`);
      context.diagnostic(`${each.length} flushes and ${oneOf.length} groups of flushes shown to be needed`);
      assert.deepEqual(survived, [], 'flushes with a removal that breaks nothing');
    });
  }
});

async function some<T>(values: readonly T[], isTrue: (value: T) => Promise<boolean>): Promise<boolean> {
  for (const value of values) if (await isTrue(value)) return true;
  return false;
}

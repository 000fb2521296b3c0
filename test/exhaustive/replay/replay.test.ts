// A power cut at every moment of a real cycle: records the system calls of `writ`, derives the disk states that a cut can
// leave, and starts a host on each. The seed chooses a part of the states; `npm run crash:replay` tries all. crash-states.ts
// is the model, host-invariant.ts the invariant.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sampled } from '../../kit/assert/sample.js';
import { caseSeed, seeded, testCases, testSeed } from '../../kit/assert/seeded.js';
import { needs } from '../../kit/programs/real-programs.js';
import { allCycles } from '../crash/all-cycles.js';
import { recordCycle } from './record-cycle.js';
import { replay } from './replay-states.js';

describe('a power cut', needs('strace', 'strace'), () => {
  for (const [index, cycle] of sampled([...allCycles.entries()])) {
    it(`at any moment of a cycle leaves one intact policy: ${cycle.name}`, async (context) => {
      using recorded = await recordCycle(cycle);
      const seed = caseSeed(testSeed(), index);
      const common = { random: seeded(seed), subsets: 2, alike: 'swept' } as const;
      const posix = await replay(recorded, { ...common, profiles: ['posix'], maxStates: testCases(30) });
      const ext4 = await replay(recorded, { ...common, profiles: ['ext4'], maxStates: testCases(10) });
      context.diagnostic(
        `${recorded.operations} operations, ${posix.tried} of ${posix.found} states, on ext4 ${ext4.tried} of ${ext4.found}`,
      );
      // A cycle without writes, or a model with one result only, would pass without any check.
      assert.ok(recorded.operations >= 30 && posix.found >= 50 && ext4.found >= 20);
      const violations = [...posix.violations, ...ext4.violations];
      assert.deepEqual(violations, [], `seed ${testSeed()}`);
    });
  }
});

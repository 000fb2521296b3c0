// A power cut at every moment of a real cycle: the system calls of `writ` are recorded, the states of the disk that
// a cut can leave are made of them, and a host starts on each. Here a part of the states, chosen by a seed; all of them
// by `npm run crash:replay`. What is modelled stands in crash-states.ts, what must hold in host-invariant.ts.
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
    it(`at any moment of a cycle leaves one whole policy: ${cycle.name}`, async (context) => {
      using recorded = await recordCycle(cycle);
      const seed = caseSeed(testSeed(), index);
      const common = { random: seeded(seed), subsets: 2, alike: 'swept' } as const;
      const posix = await replay(recorded, { ...common, profiles: ['posix'], maxStates: testCases(30) });
      const ext4 = await replay(recorded, { ...common, profiles: ['ext4'], maxStates: testCases(10) });
      context.diagnostic(
        `${recorded.operations} operations, ${posix.tried} of ${posix.found} states, on ext4 ${ext4.tried} of ${ext4.found}`,
      );
      // A cycle that writes nothing, or a model that allows one end only, would pass without a question.
      assert.ok(recorded.operations >= 30 && posix.found >= 50 && ext4.found >= 20);
      const violations = [...posix.violations, ...ext4.violations];
      assert.deepEqual(violations, [], `seed ${testSeed()}`);
    });
  }
});

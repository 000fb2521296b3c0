// Holds the test files to what their places say: a sample has its whole beside it, and what shares a process with others
// leaves them alone (scripts/test-plan.js).
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot } from '../kit/sources/source-files.js';

const tests = join(projectRoot, 'test');
const names = readdirSync(tests, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.test.ts'),
);
/** scripts/test-plan.js, which is no TypeScript. */
interface TestPlan {
  planProcesses(names: readonly string[]): readonly { readonly names: readonly string[] }[];
}

const textOf = (name: string): string => readFileSync(join(tests, name), 'utf8');

describe('test files', () => {
  it('are samples only of the exhaustive test beside them, whose name they say', () => {
    const samples = names.filter((name) => name.endsWith('.sample.test.ts'));
    assert.ok(samples.length >= 3);
    for (const sample of samples) {
      const whole = sample.replace('.sample.test.ts', '');
      assert.ok(sample.startsWith('exhaustive/') && existsSync(join(tests, `${whole}.test.ts`)), sample);
      assert.ok(textOf(sample).includes(`takeSample('${whole}', `), sample);
    }
  });

  it('have no hook outside of a suite where files share a process: it would be a hook of all of them', async () => {
    const { planProcesses } = (await import(join(projectRoot, 'scripts/test-plan.js'))) as TestPlan;
    const shared = planProcesses(names.map((name) => name.slice(0, -'.test.ts'.length)))
      .filter((unit) => unit.names.length > 1)
      .flatMap((unit) => unit.names.map((name) => `${name}.test.ts`));
    assert.ok(shared.length > 200);
    const withHook = shared.filter((name) => /^(before|after)(Each)?\(/m.test(textOf(name)));
    assert.deepEqual(withHook, []);
  });
});

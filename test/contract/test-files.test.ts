// Rules of test files: a sample is beside its exhaustive test, and files that share a process with others do not affect
// them (scripts/test-plan.js). The seed of generated cases is constant in CI and reaches fast-check.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { fixedSeed, testSeed } from '../kit/assert/seeded.js';
import { tempDir } from '../kit/disk/temp-dir.js';
import { writeTree } from '../kit/disk/write-tree.js';
import { projectRoot } from '../kit/sources/source-files.js';

const tests = join(projectRoot, 'test');
const names = readdirSync(tests, { recursive: true, encoding: 'utf8' }).filter((name) =>
  name.endsWith('.test.ts'),
);
/** The used part of scripts/test-plan.js, which has no types. */
interface TestPlan {
  chooseFiles(root: string, choice: FileChoice): readonly string[];
  longPatterns(text: string): readonly string[] | undefined;
  planProcesses(names: readonly string[]): readonly { readonly names: readonly string[] }[];
}

interface FileChoice {
  readonly set: 'usual' | 'long' | 'exhaustive' | 'all';
  readonly wanted: readonly string[];
  readonly unwanted: readonly string[];
}

interface TestSeed {
  readonly fixedSeed: number;
  chooseSeed(env: Readonly<Record<string, string>>): number;
}

const seeds = (await import(join(projectRoot, 'scripts/test-seed.js'))) as TestSeed;
const textOf = (name: string): string => readFileSync(join(tests, name), 'utf8');

describe('test files', () => {
  it('are samples only of the exhaustive test beside them, which they name', () => {
    const samples = names.filter((name) => name.endsWith('.sample.test.ts'));
    assert.ok(samples.length >= 3);
    for (const sample of samples) {
      const whole = sample.replace('.sample.test.ts', '');
      assert.ok(sample.startsWith('exhaustive/') && existsSync(join(tests, `${whole}.test.ts`)), sample);
      assert.ok(textOf(sample).includes(`takeSample('${whole}', `), sample);
    }
  });

  it('have no hook outside of a suite if files share a process, because it would apply to all of them', async () => {
    const { planProcesses } = (await import(join(projectRoot, 'scripts/test-plan.js'))) as TestPlan;
    const shared = planProcesses(names.map((name) => name.slice(0, -'.test.ts'.length)))
      .filter((unit) => unit.names.length > 1)
      .flatMap((unit) => unit.names.map((name) => `${name}.test.ts`));
    assert.ok(shared.length > 200);
    const withHook = shared.filter((name) => /^(before|after)(Each)?\(/m.test(textOf(name)));
    assert.deepEqual(withHook, []);
  });
});

describe('a set of test files', () => {
  const chooseFrom = async (set: FileChoice['set'], wanted: readonly string[] = []) => {
    const { chooseFiles } = (await import(join(projectRoot, 'scripts/test-plan.js'))) as TestPlan;
    using dir = tempDir();
    writeTree(dir.path, {
      'unit/quick.test.js': '',
      'real/host/daemon.test.js': '',
      'real/workers/mixed.test.js': "import { longCase } from '../../kit/assert/long-case.js';",
      'exhaustive/all.test.js': '',
      'exhaustive/all.sample.test.js': '',
    });
    return chooseFiles(dir.path, { set, wanted, unwanted: [] });
  };

  it('has for npm test each file except exhaustive ones, samples, and folders of long files', async () => {
    assert.deepEqual(await chooseFrom('usual'), ['real/workers/mixed', 'unit/quick']);
  });

  it('has for npm run test:long the samples, those folders, and the files with long cases', async () => {
    assert.deepEqual(await chooseFrom('long'), [
      'exhaustive/all.sample',
      'real/host/daemon',
      'real/workers/mixed',
    ]);
  });

  it('has each file in exactly one of the usual, the long and the exhaustive set, except for mixed files', async () => {
    assert.deepEqual(await chooseFrom('exhaustive'), ['exhaustive/all']);
    assert.equal((await chooseFrom('all')).length, 5);
    assert.deepEqual(await chooseFrom('all', ['unit/']), ['unit/quick']);
  });
});

describe('the patterns of the long cases of a file', () => {
  const patternsIn = async (text: string) => {
    const { longPatterns } = (await import(join(projectRoot, 'scripts/test-plan.js'))) as TestPlan;
    return longPatterns(text);
  };

  it('match the titles of marked cases and suites, and no other title', async () => {
    const patterns = await patternsIn(
      "import { longCase } from './long-case.js';\n" +
        "describe('a host (whole)', longCase, () => {\n  it('starts', () => {});\n});\n" +
        "it('costs 1 s', { ...needs('bwrap', 'bubblewrap'), ...longCase }, () => {});\n" +
        'for (const code of codes)\n  it(`reports $' +
        '{code}, once`, longCase, () => {});\n' +
        "it('is quick', () => {});\n",
    );
    const matches = (title: string) => patterns?.some((pattern) => new RegExp(pattern).test(title));
    for (const title of ['a host (whole)', 'costs 1 s', 'reports DISK_FULL, once'])
      assert.equal(matches(title), true, title);
    for (const title of ['a host whole', 'is quick', 'starts']) assert.equal(matches(title), false, title);
  });

  it('are undefined where a marked suite has no literal title, so that the whole file runs', async () => {
    const text = "import { longCase } from './long-case.js';\ndescribe(title, longCase, () => {});\n";
    assert.equal(await patternsIn(`${text}it('starts', longCase, () => {});\n`), undefined);
    assert.equal(await patternsIn("it('is quick', () => {});\n"), undefined);
  });
});

describe('the seed of a run', () => {
  it('is constant with CI=true', () => {
    assert.equal(seeds.chooseSeed({ CI: 'true' }), fixedSeed);
    assert.equal(seeds.fixedSeed, fixedSeed);
  });

  it('is drawn without CI', () => {
    const drawn = new Set(Array.from({ length: 20 }, () => seeds.chooseSeed({})));
    assert.ok(drawn.size > 1);
    for (const seed of drawn) assert.equal(seed, seed | 0);
  });

  it('is WRIT_TEST_SEED if the caller sets it, also in CI', () => {
    assert.equal(seeds.chooseSeed({ WRIT_TEST_SEED: '123', CI: 'true' }), 123);
    assert.equal(seeds.chooseSeed({ WRIT_TEST_SEED: '0' }), 0);
  });

  it('is refused unless it is a whole number below 2 ** 31', () => {
    for (const given of ['', 'x', '-1', '1.5', '1e3', String(2 ** 31)])
      assert.throws(() => seeds.chooseSeed({ WRIT_TEST_SEED: given }), RangeError, given);
  });

  it('reaches fast-check in every test process', () => {
    assert.ok(process.env['WRIT_TEST_SEED'] !== undefined);
    assert.equal(fc.readConfigureGlobal().seed, testSeed());
  });
});

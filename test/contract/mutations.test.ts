// Compares test/mutations with the sources, so that code or a test that moves takes its entries along: what
// `npm run mutate` changes is there, once, and so is the case that is to notice it. Makes no change itself.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot } from '../kit/sources/source-files.js';

interface Mutation {
  readonly id: string;
  readonly file: string;
  readonly before: string;
  readonly after: string;
  readonly test: string;
  readonly name: string;
  /** Why only `npm run verify` runs the test. */
  readonly verify?: string;
}

interface MutationsFile {
  mutationsPathOf(source: string): string;
  readMutations(root: string): readonly Mutation[];
}

const { mutationsPathOf, readMutations } = (await import(
  join(projectRoot, 'scripts/mutations-file.js')
)) as MutationsFile;
const mutations = readMutations(projectRoot);

function textOf(path: string): string {
  const whole = join(projectRoot, path);
  return existsSync(whole) ? readFileSync(whole, 'utf8') : '';
}

/** @returns the ids, so that a failure names them all */
function idsOf(wrong: (one: Mutation) => boolean): string[] {
  return mutations.filter(wrong).map(({ id }) => id);
}

describe('test/mutations', () => {
  it('has six texts for each change, and every id once', () => {
    const members = ['id', 'file', 'before', 'after', 'test', 'name'];
    for (const { verify, ...texts } of mutations) assert.deepEqual(Object.keys(texts), members, texts.id);
    assert.equal(new Set(idsOf(() => true)).size, mutations.length);
    assert.ok(mutations.length >= 121);
  });

  it('has each change in the file of its module', () => {
    const isWrong = ({ id, file }: Mutation): boolean =>
      !(JSON.parse(textOf(mutationsPathOf(file)) || '[]') as readonly Mutation[]).some(
        (one) => one.id === id,
      );
    assert.deepEqual(idsOf(isWrong), []);
  });

  it('changes text of the sources that its file has exactly once', () => {
    const isWrong = ({ file, before, after }: Mutation): boolean =>
      !/^src\/.+\.tsx?$/.test(file) || before === after || textOf(file).split(before).length !== 2;
    assert.deepEqual(idsOf(isWrong), []);
  });

  it('names a test case that its test file has', () => {
    const isWrong = ({ test, name }: Mutation): boolean =>
      !/^test\/.+\.test\.ts$/.test(test) || name === '' || !textOf(test).includes(name);
    assert.deepEqual(idsOf(isWrong), []);
  });

  it('names no case that `npm test` leaves out', () => {
    const isWrong = ({ test, name }: Mutation): boolean => {
      const behind = textOf(test).split(`'${name}',`)[1] ?? '';
      return /^\s*(?:longCase|\{[^}]*\blongCase)\b/.test(behind);
    };
    assert.deepEqual(idsOf(isWrong), []);
  });

  it('gives a reason for each change that `npm test` does not notice, and has at most ten of them', () => {
    const isOfVerify = ({ test }: Mutation): boolean => test.startsWith('test/exhaustive/');
    assert.deepEqual(
      idsOf(isOfVerify),
      idsOf(({ verify = '' }) => verify !== ''),
    );
    assert.ok(idsOf(isOfVerify).length <= 10);
  });
});

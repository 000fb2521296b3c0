// The trees of the benchmarks: the same everywhere, of the sizes that figures are said of.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { changeRuleFiles, changeTwoFiles, policySmall, writePolicyTree } from '../../../bench/policy-tree.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

function filesIn(directory: string): Map<string, Buffer> {
  const names = readdirSync(directory, { recursive: true, encoding: 'utf8' }).sort();
  const files = names.filter((name) => statSync(join(directory, name)).isFile());
  return new Map(files.map((name) => [name, readFileSync(join(directory, name))]));
}

function digestOf(files: ReadonlyMap<string, Buffer>): string {
  const digest = createHash('sha256');
  for (const [name, bytes] of files) digest.update(`${name}\n${bytes.length}\n`).update(bytes);
  return digest.digest('hex');
}

function changedNames(before: ReadonlyMap<string, Buffer>, after: ReadonlyMap<string, Buffer>): string[] {
  return [...after].filter(([name, bytes]) => before.get(name)?.equals(bytes) !== true).map(([name]) => name);
}

describe('policy-small', () => {
  it('is 200 files of 1 MB, and the same bytes in every run', () => {
    using dir = tempDir();
    writePolicyTree(dir.join('one'), policySmall);
    const files = filesIn(dir.join('one'));
    assert.equal(files.size, 200);
    const total = [...files.values()].reduce((sum, { length }) => sum + length, 0);
    assert.ok(total > 0.95e6 && total < 1.05e6, String(total));
    // Another digest is another tree: figures before and after it cannot be compared.
    assert.equal(digestOf(files), 'd3d04d17ec58b2ca0e1e47e5581a8908c653080c5097775860fd0304d92d32e6');
  });

  it('has rule files of 1 to 7 kB, no two alike', () => {
    using dir = tempDir();
    writePolicyTree(dir.join('one'), policySmall);
    const rules = [...filesIn(dir.join('one'))]
      .filter(([name]) => name !== 'block.rpz')
      .map(([, bytes]) => bytes);
    assert.ok(rules.every(({ length }) => length > 1000 && length < 7000));
    assert.equal(new Set(rules.map((bytes) => bytes.toString())).size, rules.length);
  });

  it('differs in one line of the zone, and one line more of one rule file, in its second version', () => {
    using dir = tempDir();
    writePolicyTree(dir.join('one'), policySmall);
    cpSync(dir.join('one'), dir.join('two'), { recursive: true });
    changeTwoFiles(dir.join('two'), policySmall);
    const [before, after] = [filesIn(dir.join('one')), filesIn(dir.join('two'))];
    assert.deepEqual(changedNames(before, after), ['block.rpz', 'rules-0/rule-0.conf']);
    const lines = (files: ReadonlyMap<string, Buffer>, name: string): string[] =>
      (files.get(name) ?? '').toString().split('\n');
    const zone = lines(before, 'block.rpz');
    const changed = lines(after, 'block.rpz').filter((line, index) => line !== zone[index]);
    assert.deepEqual(
      changed.map((line) => line.slice(0, 8)),
      ['changed-'],
    );
    assert.equal(lines(after, 'rules-0/rule-0.conf').length, lines(before, 'rules-0/rule-0.conf').length + 1);
  });

  it('has as many files changed as are asked for', () => {
    using dir = tempDir();
    writePolicyTree(dir.join('one'), policySmall);
    const before = filesIn(dir.join('one'));
    changeRuleFiles(dir.join('one'), 150);
    assert.equal(changedNames(before, filesIn(dir.join('one'))).length, 150);
  });
});

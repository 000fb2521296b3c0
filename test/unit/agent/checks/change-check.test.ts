import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type ChangeBase, runChangeCheck } from '../../../../src/agent/checks/change-check.js';
import type { CheckAnswer } from '../../../../src/agent/checks/parse-check.js';
import type { ChangeCheckConfig } from '../../../../src/core/config/config.js';
import type { Manifest } from '../../../../src/core/release/manifest.js';
import { manifestFile } from '../../../kit/repository/archive-builder.js';

type Files = Readonly<Record<string, string>>;

function tree(files: Files): Manifest {
  const paths = Object.keys(files).sort();
  return { files: paths.map((path) => manifestFile({ path, content: files[path] ?? '' })) };
}

function judge(bounds: Partial<ChangeCheckConfig>, before: Files, after: Files): CheckAnswer {
  const base: ChangeBase = { kind: 'active', manifest: tree(before) };
  return runChangeCheck({ config: { kind: 'change', name: 'size', ...bounds }, base, manifest: tree(after) });
}

const kindOf = ({ verdict: { kind } }: CheckAnswer): string => kind;

describe('a change check', () => {
  it('accepts a change within all bounds, and reports the sizes', () => {
    const bounds = { maxRemovedPercent: 50, bytesPercent: { min: 50, max: 200 }, files: ['a*'] };
    const answer = judge(bounds, { a: '12', b: '34' }, { a: '1234', c: '' });
    assert.equal(kindOf(answer), 'ok');
    assert.equal(answer.text, '2 -> 2 files, 4 B -> 4 B');
  });

  it('refuses if more files are removed than allowed', () => {
    const before = { a: '1', b: '1', c: '1', d: '1' };
    assert.equal(kindOf(judge({ maxRemovedPercent: 50 }, before, { a: '1', b: '1' })), 'ok');
    const answer = judge({ maxRemovedPercent: 50 }, before, { a: '1', x: '1', y: '1', z: '1' });
    assert.equal(kindOf(answer), 'refused');
    assert.deepEqual(answer.facts, {
      expected: 'at most 50% of 4 files removed',
      actual: '3 of 4 files removed (75%)',
    });
    assert.equal(kindOf(judge({ maxRemovedPercent: 0 }, before, before)), 'ok');
    assert.equal(kindOf(judge({ maxRemovedPercent: 100 }, before, { x: '1' })), 'ok');
  });

  it('refuses at one byte beyond each end of the range, and at neither end', () => {
    const range = { bytesPercent: { min: 50, max: 200 } };
    const size = (bytes: number): Files => ({ a: 'x'.repeat(bytes) });
    const verdicts = [49, 50, 200, 201].map((bytes) => kindOf(judge(range, size(100), size(bytes))));
    assert.deepEqual(verdicts, ['refused', 'ok', 'ok', 'refused']);
    assert.deepEqual(judge(range, size(1001), size(500)).facts, {
      expected: '50% to 200% of 1.0 kB',
      actual: '500 B (49.9%)',
    });
  });

  it('compares no size with that of an active release without a byte', () => {
    assert.equal(kindOf(judge({ bytesPercent: { min: 50, max: 200 } }, { a: '' }, { a: 'xxx' })), 'ok');
  });

  it('refuses if a file that matches a glob is removed or emptied', () => {
    const before = { 'views/eu.yaml': 'eu', 'views/us.yaml': 'us', 'notes.txt': 'note' };
    const after = { 'views/eu.yaml': '', 'notes.txt': '' };
    const answer = judge({ files: ['views/**'] }, before, after);
    assert.equal(kindOf(answer), 'refused');
    assert.equal(
      answer.text,
      'views/us.yaml removed; bound: views/us.yaml kept\n' +
        'views/eu.yaml emptied, it had 2 B; bound: content in views/eu.yaml',
    );
    assert.equal(kindOf(judge({ files: ['views/**'] }, before, { ...before, 'notes.txt': '' })), 'ok');
  });

  it('accepts a file that was already empty, and refuses its removal', () => {
    assert.equal(kindOf(judge({ files: ['on'] }, { on: '', a: '1' }, { on: '', a: '1' })), 'ok');
    assert.equal(kindOf(judge({ files: ['on'] }, { on: '', a: '1' }, { a: '1' })), 'refused');
  });

  it('warns of a glob that matches nothing in either release', () => {
    const answer = judge({ files: ['a', 'vews/**'] }, { a: '1' }, { a: '1' });
    assert.deepEqual([kindOf(answer), answer.text], ['warned', 'no file matches vews/**']);
    assert.equal(kindOf(judge({ files: ['new'] }, { a: '1' }, { a: '1', new: '' })), 'ok');
  });

  it('names at most twenty removed files', () => {
    const names = Array.from({ length: 100 }, (_, index) => `f${index}`);
    const before = Object.fromEntries(names.map((name) => [name, '1']));
    assert.equal(judge({ files: ['f*'] }, before, { a: '1' }).text.split('\n').length, 20);
  });

  it('compares nothing if the release is exempt, and reports the reason', () => {
    const config: ChangeCheckConfig = { kind: 'change', name: 'size', maxRemovedPercent: 0 };
    const base: ChangeBase = { kind: 'exempt', reason: 'withdrawal' };
    const answer = runChangeCheck({ config, base, manifest: tree({}) });
    assert.deepEqual(answer.verdict, { kind: 'ok', reason: 'not compared: withdrawal' });
  });
});

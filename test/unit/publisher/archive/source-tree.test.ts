import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { isWritError } from '../../../../src/core/errors.js';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { readSourceTree } from '../../../../src/publisher/archive/source-tree.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

const limits = defaultArchiveLimits;

function refusalsOf(source: string, tight = limits): readonly unknown[] {
  try {
    readSourceTree(source, tight);
  } catch (error) {
    if (!isWritError(error)) throw error;
    assert.equal(error.code, 'SOURCE_REFUSED');
    return (error.facts['refusals'] as unknown[] | undefined) ?? [];
  }
  assert.fail('SOURCE was accepted');
}

describe('readSourceTree', () => {
  it('lists files by path bytes and drops empty directories, saying so', () => {
    using dir = tempDir();
    const files = { 'b/c': 'c', a: 'a', 'b-': '', 'none/inner/': '', 'b/empty/': '' };
    const tree = readSourceTree(writeTree(dir.join('s'), files), limits);
    assert.deepEqual(
      tree.manifest.files.map((file) => file.path),
      ['a', 'b-', 'b/c'],
    );
    assert.deepEqual(tree.droppedDirectories, ['b/empty', 'none', 'none/inner']);
  });

  it('takes a link to a directory as SOURCE itself', () => {
    using dir = tempDir();
    writeTree(dir.join('s'), { a: 'a' });
    fs.symlinkSync('s', dir.join('link'));
    assert.equal(readSourceTree(dir.join('link'), limits).manifest.files.length, 1);
  });

  const hostile: Readonly<Record<string, (source: string) => void>> = {
    'a link to a file': (source) => fs.symlinkSync('ok', `${source}/link`),
    'a link that leads out': (source) => fs.symlinkSync('/etc/passwd', `${source}/link`),
    'a link to a directory': (source) => fs.symlinkSync('.', `${source}/link`),
    'a FIFO': (source) => void execFileSync('mkfifo', [`${source}/fifo`]),
    'the name of the manifest': (source) => fs.writeFileSync(`${source}/.writ-manifest.json`, ''),
    'a name that is not UTF-8': (source) =>
      fs.writeFileSync(Buffer.concat([Buffer.from(`${source}/a`), Buffer.from([0xff])]), ''),
    'a name with a backslash': (source) => fs.writeFileSync(`${source}/a\\b`, ''),
    'a name with a line break': (source) => fs.writeFileSync(`${source}/a\nb`, ''),
    'twins by case': (source) => fs.writeFileSync(`${source}/OK`, ''),
    'a directory whose name breaks the rules': (source) => fs.mkdirSync(`${source}/dir.`),
  };
  for (const [name, make] of Object.entries(hostile)) {
    it(`refuses ${name}`, () => {
      using dir = tempDir();
      const source = writeTree(dir.join('s'), { ok: 'ok' });
      make(source);
      assert.equal(refusalsOf(source).length, 1);
    });
  }

  it('says all refusals at once, to a bound', () => {
    using dir = tempDir();
    const source = writeTree(dir.join('s'), { ok: 'ok' });
    for (const name of ['one', 'two', 'three']) fs.symlinkSync('ok', `${source}/${name}`);
    assert.equal(refusalsOf(source).length, 3);
    for (let n = 0; n < 50; n += 1) fs.symlinkSync('ok', `${source}/n${n}`);
    assert.equal(refusalsOf(source).length, 20);
  });

  it('refuses a tree without a file, a missing one, and a file in its place', () => {
    using dir = tempDir();
    refusalsOf(writeTree(dir.join('empty'), { 'sub/': '' }));
    refusalsOf(dir.join('missing'));
    fs.writeFileSync(dir.join('file'), '');
    refusalsOf(dir.join('file'));
  });

  for (const [name, tight] of Object.entries({
    'number of files': { ...limits, maxEntries: 1 },
    'size of a file': { ...limits, maxFileBytes: 5 },
    'size of the tree': { ...limits, maxTreeBytes: 9 },
    depth: { ...limits, maxDepth: 1 },
    'size of the manifest': { ...limits, maxManifestBytes: 100 },
  })) {
    it(`is bounded by ${name}`, () => {
      using dir = tempDir();
      refusalsOf(writeTree(dir.join('s'), { a: '123456', 'b/c': '1234' }), tight);
    });
  }
});

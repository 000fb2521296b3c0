import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import {
  listOpenDirectory,
  openDirectory,
  openDirectoryBelow,
  openFileBelow,
} from '../../../../src/platform/disk/open-below.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

const open = (): number => fs.readdirSync('/proc/self/fd').length;

describe('openFileBelow', () => {
  it('opens a file below directories, and leaves no other descriptor open', () => {
    using dir = tempDir();
    writeTree(dir.join('s'), { 'a/b/c': 'content' });
    const { descriptor: root, identity } = openDirectory(dir.join('s'));
    const before = open();
    const descriptor = openFileBelow(identity, 'a/b/c') ?? -1;
    assert.equal(fs.readFileSync(descriptor, 'utf8'), 'content');
    assert.equal(open(), before + 1);
    fs.closeSync(descriptor);
    assert.throws(() => openFileBelow(identity, 'a/missing/c'), { code: 'ENOENT' });
    assert.equal(open(), before);
    fs.closeSync(root);
  });

  it('follows a link in no component', () => {
    using dir = tempDir();
    writeTree(dir.join('s'), { 'a/b': 'b' });
    writeTree(dir.join('outside'), { b: 'secret', 'a/b': 'secret' });
    const { descriptor, identity } = openDirectory(dir.join('s'));
    fs.symlinkSync('a', dir.join('s', 'within'));
    fs.symlinkSync(dir.join('outside'), dir.join('s', 'out'));
    fs.symlinkSync('b', dir.join('s', 'a', 'last'));
    for (const path of ['within/b', 'out/b', 'out/a/b']) {
      assert.throws(() => openFileBelow(identity, path), { code: 'ENOTDIR' });
    }
    assert.throws(() => openFileBelow(identity, 'a/last'), { code: 'ELOOP' });
    assert.throws(() => openDirectoryBelow(descriptor, 'out'), { code: 'ENOTDIR' });
    fs.closeSync(descriptor);
  });

  it('opens no file in a directory that replaced the opened one', () => {
    using dir = tempDir();
    writeTree(dir.join('s'), { a: 'a' });
    const { descriptor, identity } = openDirectory(dir.join('s'));
    fs.renameSync(dir.join('s'), dir.join('moved'));
    writeTree(dir.join('s'), { a: 'other', b: 'other' });
    assert.equal(openFileBelow(identity, 'a'), undefined);
    assert.deepEqual(
      listOpenDirectory(descriptor).map(({ name }) => name.toString()),
      ['a'],
    );
    fs.closeSync(descriptor);
  });
});

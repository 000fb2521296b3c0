// Secret keys and repositories lie apart, whatever links lead from one to the other.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import {
  requireApart,
  requireKeyPlace,
  requireSourceApart,
} from '../../../../src/publisher/keys/key-place.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const refused = { code: 'KEYS_IN_REPOSITORY' };

/** @returns a directory that a host would be given, by one of the names that say so */
function repositoryIn(dir: TempDir, name = 'timestamp.json'): string {
  fs.mkdirSync(dir.join('repo', 'metadata'), { recursive: true });
  fs.writeFileSync(dir.join('repo', 'metadata', name), '{}');
  return dir.join('repo');
}

describe('requireKeyPlace', () => {
  it('refuses keys in a repository, at its top, below, and where nothing is yet', () => {
    for (const name of ['timestamp.json', '1.root.json']) {
      using dir = tempDir();
      const repository = repositoryIn(dir, name);
      for (const place of ['', 'keys', 'metadata', 'a/b/anna.key'])
        assert.throws(() => requireKeyPlace(join(repository, place)), refused, place);
      for (const place of ['keys', 'repo-keys', 'anna.key']) requireKeyPlace(dir.join(place));
    }
  });

  it('refuses a link that leads into one', () => {
    using dir = tempDir();
    const repository = repositoryIn(dir);
    fs.mkdirSync(join(repository, 'deep'));
    fs.symlinkSync(join(repository, 'deep'), dir.join('keys'));
    assert.throws(() => requireKeyPlace(dir.join('keys', 'carol.key')), refused);
  });
});

describe('requireApart', () => {
  it('refuses keys in the repository that is to be made, and one place for both', () => {
    using dir = tempDir();
    for (const keys of ['repo', 'repo/keys', 'repo/../repo/deep/keys'])
      assert.throws(() => requireApart(dir.join('repo'), dir.join(keys)), refused, keys);
    fs.mkdirSync(dir.join('real'));
    fs.symlinkSync(dir.join('real'), dir.join('link'));
    assert.throws(() => requireApart(dir.join('link', 'repo'), dir.join('real', 'repo', 'keys')), refused);
    requireApart(dir.join('repo'), dir.join('repo.keys'));
  });

  it('refuses a repository among keys, those to come and those that lie there', () => {
    using dir = tempDir();
    assert.throws(() => requireApart(dir.join('keys', 'repo'), dir.join('keys')), refused);
    fs.mkdirSync(dir.join('old'));
    fs.writeFileSync(dir.join('old', 'server.key'), '');
    requireApart(dir.join('old', 'repo'), dir.join('keys'));
    for (const name of ['targets.key', 'root-1.key']) {
      fs.writeFileSync(dir.join('old', name), '');
      assert.throws(() => requireApart(dir.join('old', 'repo'), dir.join('keys')), refused, name);
      fs.rmSync(dir.join('old', name));
    }
  });
});

describe('requireSourceApart', () => {
  const apart = (dir: TempDir, source: string, secretFiles?: readonly string[]): void =>
    requireSourceApart(source, {
      keysDirectory: dir.join('keys'),
      repository: dir.join('repo'),
      secretFiles,
    });
  const refusedSource = { code: 'SOURCE_NOT_APART' };

  it('refuses a source that is, contains, or is inside the keys or the repository', () => {
    using dir = tempDir();
    for (const path of ['keys/inner', 'repo/metadata', 'policy'])
      fs.mkdirSync(dir.join(path), { recursive: true });
    for (const path of ['.', 'keys', 'keys/inner', 'repo', 'repo/metadata', '..'])
      assert.throws(() => apart(dir, join(dir.path, path)), refusedSource, path);
    for (const path of ['policy', 'keys2', 'missing']) apart(dir, dir.join(path));
  });

  it('refuses it through a link on either side, and keys that are not there yet', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('real/keys'), { recursive: true });
    fs.symlinkSync(dir.join('real'), dir.join('policy'));
    fs.symlinkSync(dir.join('real/keys'), dir.join('keys'));
    for (const path of ['policy', 'real', 'real/keys'])
      assert.throws(() => apart(dir, dir.join(path)), refusedSource, path);
    fs.rmSync(dir.join('keys'));
    assert.throws(() => apart(dir, dir.path), refusedSource);
  });

  it('refuses it with the file of the passphrase in it, also through a link', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('policy'));
    fs.writeFileSync(dir.join('policy/pass'), 'x');
    fs.symlinkSync('policy/pass', dir.join('link'));
    for (const path of ['policy/pass', 'link'])
      assert.throws(() => apart(dir, dir.join('policy'), [dir.join(path)]), refusedSource, path);
    apart(dir, dir.join('policy'), [dir.join('pass')]);
  });
});

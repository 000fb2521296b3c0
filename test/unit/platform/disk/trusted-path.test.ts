import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { requireTrustedPath } from '../../../../src/platform/disk/trusted-path.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const otherUser = 65_534;
const asRoot = { skip: process.getuid?.() === 0 ? false : 'only root can give files to another user' };
const refused = { code: 'PATH_UNSAFE' };
const check = (path: string): void =>
  requireTrustedPath(path, (name) => name === 'root.json' || name === 'metadata');

/** The repository that a server's user owns, in a directory of root. */
function servedBy(dir: TempDir, owner: number): string {
  const path = dir.join('repo');
  fs.mkdirSync(`${path}/metadata`, { recursive: true });
  for (const one of [path, `${path}/metadata`]) fs.chownSync(one, owner, owner);
  return path;
}

describe('requireOwnPlace', () => {
  it('accepts a directory of this user, and a path that does not exist yet', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('keys'), { mode: 0o700 });
    check(dir.join('keys'));
    check(dir.join('not/there'));
    fs.chmodSync(dir.join('keys'), 0o702);
    assert.throws(() => check(dir.join('keys/not/there')), refused);
  });

  it('does not hint to change the mode of a device', () => {
    assert.throws(() => check('/dev/null'), {
      ...refused,
      hint: /^Choose another path: this one is neither a file/,
    });
  });

  it('refuses a parent that a group of several users can write', asRoot, () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('team/keys'), { recursive: true });
    fs.chmodSync(dir.join('team'), 0o775);
    check(dir.join('team/keys'));
    // A group that /etc/group does not name may have any member.
    fs.chownSync(dir.join('team'), 0, 4_000_000);
    assert.throws(() => check(dir.join('team/keys')), refused);
  });

  it('accepts the repository of a server in a directory of root, and refuses a link in it', asRoot, () => {
    using dir = tempDir();
    const path = servedBy(dir, otherUser);
    check(path);
    fs.symlinkSync('/etc/passwd', `${path}/root.json`);
    check(path);
    fs.lchownSync(`${path}/root.json`, otherUser, otherUser);
    assert.throws(() => check(path), refused);
  });

  it('refuses a directory in which another user owns an opened entry', asRoot, () => {
    using dir = tempDir();
    const path = servedBy(dir, 0);
    check(path);
    fs.chownSync(`${path}/metadata`, otherUser, otherUser);
    assert.throws(() => check(path), { code: 'PATH_UNSAFE', message: /metadata can be changed/ });
  });

  it('refuses the directory of another user that a third user could replace', asRoot, () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('open'), { mode: 0o755 });
    fs.chmodSync(dir.join('open'), 0o777);
    fs.mkdirSync(dir.join('open/keys'));
    fs.chownSync(dir.join('open/keys'), otherUser, otherUser);
    assert.throws(() => check(dir.join('open/keys')), refused);
  });
});

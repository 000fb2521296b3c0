import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { isOwnGroup, resolveGroup } from '../../../../src/platform/users/group-id.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('looking up a group', () => {
  it('takes a number as it is and finds a whole name', () => {
    using dir = tempDir();
    writeFileSync(dir.join('group'), 'root:x:0:\nbinder:x:7:\nbind:x:53:eve\nbroken:x:\n');
    assert.equal(resolveGroup(53), 53);
    assert.equal(resolveGroup('bind', dir.join('group')), 53);
    assert.equal(resolveGroup('root'), 0);
    for (const name of ['bin', 'eve', 'broken', '']) {
      throwsCode('CONFIG_INVALID', () => resolveGroup(name, dir.join('group')));
    }
  });
});

describe('a group', () => {
  it('belongs to one user alone if no other user has it in /etc/passwd or /etc/group', () => {
    using dir = tempDir();
    const [passwd, group] = [dir.join('passwd'), dir.join('group')];
    writeFileSync(passwd, 'root:x:0:0::\nanna:x:1000:1000::\nben:x:1001:1001::\ncleo:x:1002:1001::\n');
    writeFileSync(
      group,
      'root:x:0:\nanna:x:1000:\nben:x:1001:\nboth:x:2000:anna,ben\nmine:x:2001:anna,root\nfar:x:2002:anna,dora\n',
    );
    const isOf = (gid: number, uid: number): boolean => isOwnGroup(gid, { uid, passwd, group });
    assert.deepEqual(
      [1000, 2001, 0].map((gid) => isOf(gid, 1000)),
      [true, true, true],
    );
    // Of another user, with a second user, listed with another, with one of a directory service, and named by no file.
    assert.deepEqual(
      [1001, 2000, 2002, 4242].map((gid) => isOf(gid, 1000)),
      [false, false, false, false],
    );
    assert.equal(isOf(1001, 1001), false);
  });
});

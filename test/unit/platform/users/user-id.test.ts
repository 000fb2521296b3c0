import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { asUser, resolveUser, type UserFiles, userName } from '../../../../src/platform/users/user-id.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

function files(dir: TempDir): UserFiles {
  writeFileSync(dir.join('passwd'), 'root:x:0:0::/:\nunbound:x:104:110::/:\nbroken:x::x:/:\n');
  writeFileSync(dir.join('group'), 'root:x:0:\nssl-cert:x:111:unbound,nginx\nx:y\nother:x:112:unbounded\n');
  return { passwd: dir.join('passwd'), group: dir.join('group') };
}

describe('lookUpUser', () => {
  it('finds a name with its own group and its others', () => {
    using dir = tempDir();
    assert.deepEqual(resolveUser('unbound', files(dir)), { uid: 104, gid: 110, groups: [111] });
  });

  it('finds a number, or returns it unchanged', () => {
    using dir = tempDir();
    assert.deepEqual(resolveUser(104, files(dir)), { uid: 104, gid: 110, groups: [111] });
    assert.deepEqual(resolveUser(4000, files(dir)), { uid: 4000, gid: 4000, groups: [] });
  });

  it('refuses an unknown name, or one without numbers', () => {
    using dir = tempDir();
    for (const name of ['nobody-here', 'broken']) {
      assert.throws(() => resolveUser(name, files(dir)), { code: 'CONFIG_INVALID' });
    }
  });

  it('reads the files of this host', () => {
    assert.equal(resolveUser('root').uid, 0);
  });
});

describe('userName', () => {
  it('returns the name of a number, and the number without a name', () => {
    using dir = tempDir();
    assert.deepEqual([userName(104, files(dir)), userName(4000, files(dir))], ['unbound', '4000']);
  });
});

describe('asUser', () => {
  it('is what root types: runuser for a name, which knows no numbers', () => {
    assert.equal(asUser(0), 'runuser -u root --');
    assert.equal(asUser(4_000_000), 'setpriv --reuid=4000000 --clear-groups');
  });
});

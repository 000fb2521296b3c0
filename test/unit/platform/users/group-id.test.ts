import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { lookUpGroup } from '../../../../src/platform/users/group-id.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('looking up a group', () => {
  it('takes a number as it is and finds a whole name', () => {
    using dir = tempDir();
    writeFileSync(dir.join('group'), 'root:x:0:\nbinder:x:7:\nbind:x:53:eve\nbroken:x:\n');
    assert.equal(lookUpGroup(53), 53);
    assert.equal(lookUpGroup('bind', dir.join('group')), 53);
    assert.equal(lookUpGroup('root'), 0);
    for (const name of ['bin', 'eve', 'broken', '']) {
      throwsCode('CONFIG_INVALID', () => lookUpGroup(name, dir.join('group')));
    }
  });
});

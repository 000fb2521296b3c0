import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { isWritError } from '../../src/core/errors.js';
import { lookUpGroup } from '../../src/platform/group-id.js';
import { tempDir } from '../support/temp-dir.js';

describe('looking up a group', () => {
  it('takes a number as it is and finds a whole name', () => {
    using dir = tempDir();
    writeFileSync(dir.join('group'), 'root:x:0:\nbinder:x:7:\nbind:x:53:eve\nbroken:x:\n');
    assert.equal(lookUpGroup(53), 53);
    assert.equal(lookUpGroup('bind', dir.join('group')), 53);
    assert.equal(lookUpGroup('root'), 0);
    for (const name of ['bin', 'eve', 'broken', '']) {
      assert.throws(
        () => lookUpGroup(name, dir.join('group')),
        (error) => isWritError(error) && error.code === 'CONFIG_INVALID',
      );
    }
  });
});

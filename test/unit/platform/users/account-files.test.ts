import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { accountRows, isAccountId } from '../../../../src/platform/users/account-files.js';
import { resolveGroup } from '../../../../src/platform/users/group-id.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('the rows of an account file', () => {
  it('are its lines, field by field', () => {
    using dir = tempDir();
    writeFileSync(dir.join('group'), 'root:x:0:\nbind:x:53:eve');
    assert.deepEqual(accountRows(dir.join('group')), [
      ['root', 'x', '0', ''],
      ['bind', 'x', '53', 'eve'],
    ]);
  });

  it('are empty for a missing or too long file', () => {
    using dir = tempDir();
    throwsCode('CONFIG_INVALID', () => resolveGroup('bind', dir.join('none')));
    writeFileSync(dir.join('long'), `bind:x:53:\n${'#'.repeat(1_000_000)}`);
    throwsCode('CONFIG_INVALID', () => resolveGroup('bind', dir.join('long')));
  });

  it('have numbers of decimal digits', () => {
    assert.deepEqual(['0', '4294967295', '', '-1', '0x1', '12345678901'].map(isAccountId), [
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });
});

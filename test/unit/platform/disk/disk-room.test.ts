import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readFreeSpace, requireRoom } from '../../../../src/platform/disk/disk-room.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('room on a disk', () => {
  it('is asked for what is still to be written: what lies there already counts as free', () => {
    using dir = tempDir();
    const { totalBytes } = readFreeSpace(dir.path);
    const wish = { path: dir.path, what: 'access 1', space: { bytes: 2 * totalBytes, inodes: 1 } };
    const error = throwsCode('DISK_FULL', () => requireRoom(wish));
    assert.deepEqual([error.facts['unit'], error.facts['path']], ['bytes', dir.path]);
    // The place to look at is one that is still there when a person reads of it.
    assert.match(error.hint, /^Free [0-9.]+ [kMGT]B there \(`df -h \//);
    assert.ok(existsSync(/`df -h ([^`]+)`/.exec(error.hint)?.[1] ?? ''), error.hint);
    assert.match(error.message, /^access 1 needs [0-9.]+ [kMGT]B, and [0-9.]+ [kMGT]B are free$/);
    requireRoom({ ...wish, written: { bytes: 3 * totalBytes, inodes: 0 } });
  });
});

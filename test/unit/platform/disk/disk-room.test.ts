import assert from 'node:assert/strict';
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
    requireRoom({ ...wish, written: { bytes: 3 * totalBytes, inodes: 0 } });
  });
});

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readFreeSpace, requireFreeSpace } from '../../../../src/platform/disk/free-space.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('requireFreeSpace', () => {
  it('counts bytes that are written already as free', () => {
    using dir = tempDir();
    const { totalBytes } = readFreeSpace(dir.path);
    const request = { path: dir.path, what: 'access 1', space: { bytes: 2 * totalBytes, inodes: 1 } };
    const error = throwsCode('DISK_FULL', () => requireFreeSpace(request));
    assert.deepEqual([error.facts['unit'], error.facts['path']], ['bytes', dir.path]);
    // The path in the hint still exists when a person reads it.
    assert.match(error.hint, /^Free [0-9.]+ [kMGT]B there \(`df -h \//);
    assert.ok(existsSync(/`df -h ([^`]+)`/.exec(error.hint)?.[1] ?? ''), error.hint);
    assert.match(error.message, /^access 1 needs [0-9.]+ [kMGT]B, and [0-9.]+ [kMGT]B are free$/);
    requireFreeSpace({ ...request, written: { bytes: 3 * totalBytes, inodes: 0 } });
  });
});

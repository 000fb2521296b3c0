import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readMaxOpenFiles, readProcessLimits } from '../../../../src/platform/process/process-limits.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('readProcessLimits', () => {
  it('has the hard limits, and none where there is none', () => {
    using dir = tempDir();
    writeFileSync(
      dir.join('limits'),
      'Limit                     Soft Limit           Hard Limit           Units     \n' +
        'Max data size             1000                 unlimited            bytes     \n' +
        'Max processes             100                  200                  processes \n',
    );
    assert.deepEqual(readProcessLimits(dir.join('limits')), {
      maxDataBytes: Number.POSITIVE_INFINITY,
      maxProcesses: 200,
    });
  });

  it('has the descriptors that there may be, which Node takes all of', () => {
    using dir = tempDir();
    const path = dir.join('limits');
    writeFileSync(path, 'Max open files            1024                 524288               files     \n');
    assert.equal(readMaxOpenFiles(path), 524_288);
    assert.ok(readMaxOpenFiles() > 0);
  });

  it('reads those of this process', () => {
    const { maxDataBytes, maxProcesses } = readProcessLimits();
    assert.ok(maxDataBytes > 0 && maxProcesses > 0);
  });
});

import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { fileAsSource } from '../../../../src/publisher/delta/file-source.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('fileAsSource', () => {
  it('returns the bytes of its part, forwards, backwards and after its window', () => {
    using dir = tempDir();
    const bytes = Buffer.from(Array.from({ length: 1_000_000 }, (_, at) => (at * 7 + (at >> 8)) % 256));
    fs.writeFileSync(dir.join('file'), bytes);
    const descriptor = fs.openSync(dir.join('file'), 'r');
    const part = { descriptor, start: 1000, length: 900_000 };
    const source = fileAsSource(part, () => new Error('it is too short'));
    for (const [offset, length] of [
      [0, 10],
      [600_000, 100],
      [100_000, 100],
      [99_000, 400_000],
      [899_990, 10],
      [0, 900_000],
    ] as const)
      assert.deepEqual(
        Buffer.from(source.read(offset, length)),
        bytes.subarray(1000 + offset, 1000 + offset + length),
      );
    fs.closeSync(descriptor);
  });
});

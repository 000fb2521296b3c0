import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  addSpace,
  type FreeSpace,
  isNowFree,
  shortageOf,
  spaceForArchive,
  spaceForTree,
} from '../../../../src/core/release/disk-space.js';
import { manifestFile } from '../../../kit/repository/archive-builder.js';

const free = (changes: Partial<FreeSpace> = {}): FreeSpace => ({
  bytes: 1_000_000,
  inodes: 1000,
  blockBytes: 4096,
  totalBytes: 10_000_000,
  totalInodes: 10_000,
  ...changes,
});

describe('the space that a release needs', () => {
  it('includes the archive, a tree of its size and the manifest before the fetch', () => {
    assert.deepEqual(spaceForArchive(1000, 30), { bytes: 2030, inodes: 16 });
  });

  it('includes whole blocks for each file and directory in the manifest', () => {
    const files = ['a', 'd/b', 'd/e/c'].map((path) => manifestFile({ path, content: 'x' }));
    // Three files and three directories of a block each, and a name for every file.
    assert.deepEqual(spaceForTree({ files }, 4096), { bytes: 6 * 4096 + 3 * 64, inodes: 6 + 16 });
    const large = [manifestFile({ path: 'a', content: 'x'.repeat(4097) })];
    assert.equal(spaceForTree({ files: large }, 4096).bytes, 3 * 4096 + 64);
    assert.deepEqual(spaceForTree({ files: [] }, 512), { bytes: 512, inodes: 17 });
  });

  it('is the sum of its parts', () => {
    assert.deepEqual(addSpace({ bytes: 1, inodes: 2 }, { bytes: 3, inodes: 4 }), { bytes: 4, inodes: 6 });
  });
});

describe('a shortage', () => {
  const rows: readonly [string, number, number, Partial<FreeSpace>, string | undefined][] = [
    ['none when all fits with the margin of a twentieth', 500_000, 500, {}, undefined],
    ['of bytes, one below', 500_001, 500, {}, 'bytes 1000001 1000000'],
    ['of inodes, one below', 1, 901, {}, 'inodes 1001 1000'],
    ['none of inodes where the file system makes them as needed', 1, 5000, { totalInodes: 0 }, undefined],
    ['with a margin of 16 MB on a large disk', 1, 1, { totalBytes: 1e12 }, 'bytes 16000001 1000000'],
    ['with a margin of a few inodes on a small one', 1, 999, { totalInodes: 20 }, undefined],
  ];
  for (const [name, bytes, inodes, changes, expected] of rows) {
    it(`is ${name}`, () => {
      const found = shortageOf({ bytes, inodes }, free(changes));
      assert.equal(found && `${found.unit} ${found.needed} ${found.available}`, expected);
    });
  }

  it('ends when the missing space is free', () => {
    assert.equal(isNowFree({ unit: 'bytes', needed: 1_000_000 }, free()), true);
    assert.equal(isNowFree({ unit: 'bytes', needed: 1_000_001 }, free()), false);
    assert.equal(isNowFree({ unit: 'inodes', needed: 1001 }, free()), false);
  });
});

// Another user who can write SOURCE, or its parent, while it is published: the archive has only what was listed, or there is none.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { defaultArchiveLimits } from '../../../../src/core/limits.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { packBundle } from '../../../../src/publisher/archive/build-bundle.js';
import { readSourceTree } from '../../../../src/publisher/archive/source-tree.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

const limits = defaultArchiveLimits;
const refused = { code: 'SOURCE_REFUSED', message: /changed while it was read/ };

/** The file outside has the size and content of the listed one: only its place differs. */
function madeSource(dir: TempDir): string {
  writeTree(dir.join('outside'), { key: 'same', 'deep/key': 'same', a: 'a' });
  return writeTree(dir.join('s'), { a: 'a', 'z/key': 'same', 'z/deep/key': 'same' });
}

const swaps: Readonly<Record<string, (dir: TempDir) => void>> = {
  'a directory': (dir) => {
    fs.renameSync(dir.join('s/z'), dir.join('gone'));
    fs.symlinkSync(dir.join('outside'), dir.join('s/z'));
  },
  'a directory in a directory': (dir) => {
    fs.renameSync(dir.join('s/z/deep'), dir.join('gone'));
    fs.symlinkSync(dir.join('outside/deep'), dir.join('s/z/deep'));
  },
  'a file': (dir) => {
    fs.rmSync(dir.join('s/z/key'));
    fs.symlinkSync(dir.join('outside/key'), dir.join('s/z/key'));
  },
  'SOURCE itself': (dir) => {
    fs.renameSync(dir.join('s'), dir.join('gone'));
    writeTree(dir.join('other'), { 'z/key': 'same', 'z/deep/key': 'same', a: 'a' });
    fs.symlinkSync(dir.join('other'), dir.join('s'));
  },
};

describe('a link that takes the place of', () => {
  for (const [name, swap] of Object.entries(swaps)) {
    it(`${name} after it was listed is refused`, async () => {
      using dir = tempDir();
      const source = madeSource(dir);
      let isSwapped = false;
      const progress = (): void => {
        if (!isSwapped) swap(dir);
        isSwapped = true;
      };
      await assert.rejects(readSourceTree(source, limits, { report: { progress } }), refused);
    });

    it(`${name} after it was read is not packed`, async () => {
      using dir = tempDir();
      const tree = await readSourceTree(madeSource(dir), limits);
      swap(dir);
      const options = { archivePath: dir.join('archive'), limits, durableFs: createDurableFs() };
      await assert.rejects(packBundle(tree, options), refused);
    });
  }
});

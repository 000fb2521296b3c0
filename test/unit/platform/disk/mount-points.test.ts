// Which mount a path is at, above or in: by whole names, never by the first letters of one.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { mountAtOrBelow, mountOf, readMountPoints } from '../../../../src/platform/disk/mount-points.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

/** A directory with `tree/below` and its neighbour `tree-2`, by the paths that the kernel would name. */
function neighbours(dir: TempDir): (name: string) => string {
  fs.mkdirSync(dir.join('tree', 'below'), { recursive: true });
  fs.mkdirSync(dir.join('tree-2'));
  const real = fs.realpathSync(dir.path);
  return (name) => `${real}/${name}`;
}

describe('mountAtOrBelow', () => {
  it('finds a mount on the path and one below it', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    assert.equal(mountAtOrBelow(dir.join('tree'), ['/', at('tree')]), at('tree'));
    assert.equal(mountAtOrBelow(dir.join('tree'), ['/', at('tree/below')]), at('tree/below'));
  });

  it('finds neither one above nor one on a neighbour whose name begins alike', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    assert.equal(mountAtOrBelow(dir.join('tree'), ['/', fs.realpathSync(dir.path), at('tree-2')]), undefined);
  });

  it('looks at a link itself, not at where it points', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    fs.symlinkSync('tree', dir.join('link'));
    assert.equal(mountAtOrBelow(dir.join('link'), [at('tree')]), undefined);
  });
});

describe('mountOf', () => {
  it('is the nearest mount that the path lies in', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    const points = ['/', at('tree/below'), at('tree')];
    assert.equal(mountOf(dir.join('tree', 'below'), points), at('tree/below'));
    assert.equal(mountOf(dir.join('tree'), points), at('tree'));
  });

  it('is not a neighbour whose name the path begins with', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    assert.equal(mountOf(dir.join('tree-2'), ['/', at('tree')]), '/');
  });
});

describe('readMountPoints', () => {
  it('has the root of this machine, and none where there is no table', () => {
    using dir = tempDir();
    assert.ok(readMountPoints().includes('/'));
    assert.deepEqual(readMountPoints(dir.join('none')), []);
  });
});

// The mounts at, below and above a path: whole names are compared, never prefixes of names.
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

  it('finds no mount above the path, or on a sibling with the same name prefix', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    assert.equal(mountAtOrBelow(dir.join('tree'), ['/', fs.realpathSync(dir.path), at('tree-2')]), undefined);
  });

  it('checks a link itself and not its target', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    fs.symlinkSync('tree', dir.join('link'));
    assert.equal(mountAtOrBelow(dir.join('link'), [at('tree')]), undefined);
  });
});

describe('mountOf', () => {
  it('returns the nearest mount that contains the path', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    const points = ['/', at('tree/below'), at('tree')];
    assert.equal(mountOf(dir.join('tree', 'below'), points), at('tree/below'));
    assert.equal(mountOf(dir.join('tree'), points), at('tree'));
  });

  it('does not return a sibling with a name that is a prefix of the path', () => {
    using dir = tempDir();
    const at = neighbours(dir);
    assert.equal(mountOf(dir.join('tree-2'), ['/', at('tree')]), '/');
  });
});

describe('readMountPoints', () => {
  it('returns the root of this machine, and nothing without a mount table', () => {
    using dir = tempDir();
    assert.ok(readMountPoints().includes('/'));
    assert.deepEqual(readMountPoints(dir.join('none')), []);
  });
});

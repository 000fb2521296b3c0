// A rename of a directory that the file system refuses, and the files that a crash at each of its steps leaves.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { recoverReplacedReleases } from '../../../../src/agent/generations/release-records.js';
import { hostPaths } from '../../../../src/agent/state/paths.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { canRenameDirectory, isMovedSource } from '../../../../src/platform/disk/durable-rename.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

const refused = (): Error => Object.assign(new Error('EXDEV'), { code: 'EXDEV' });

/** A disk that renames no directory; it is killed before the operation with this label. */
function layered(killedAt?: string) {
  return createDurableFs({
    before: ({ op }) => {
      if (op === 'x:rename') throw refused();
      if (op === killedAt) throw new Error(`killed at ${op}`);
    },
  });
}

function sample(dir: TempDir): void {
  fs.mkdirSync(dir.join('archives/b/1-0123456789ab/in'), { recursive: true });
  const place = dir.join('archives/b/1-0123456789ab');
  fs.writeFileSync(`${place}/in/f`, 'policy', { mode: 0o640 });
  fs.symlinkSync('in/f', `${place}/link`);
  fs.utimesSync(`${place}/in/f`, 1000, 2000);
  fs.chmodSync(`${place}/in`, 0o750);
}

const place = 'archives/b/1-0123456789ab';
const aside = `${place}.replaced`;
const read = (dir: TempDir, name: string): string => fs.readFileSync(dir.join(`${name}/in/f`), 'utf8');

describe('a rename of a directory of a lower layer', () => {
  it('copies with modes, times and links, and removes the source', () => {
    using dir = tempDir();
    sample(dir);
    layered().rename('x', dir.join(place), dir.join(aside));
    const file = fs.statSync(dir.join(`${aside}/in/f`));
    assert.deepEqual([file.mode & 0o777, file.mtimeMs, read(dir, aside)], [0o640, 2_000_000, 'policy']);
    assert.equal(fs.statSync(dir.join(`${aside}/in`)).mode & 0o777, 0o750);
    assert.equal(fs.readlinkSync(dir.join(`${aside}/link`)), 'in/f');
    assert.deepEqual(fs.readdirSync(dir.join('archives/b')), ['1-0123456789ab.replaced']);
  });

  it('leaves a retained release complete at one path, whatever step a crash comes before', () => {
    const steps = ['copy', 'copy-rename', 'copy-flush', 'copy-mark', 'copy-mark-flush', 'copy-remove'];
    for (const step of steps) {
      using dir = tempDir();
      sample(dir);
      assert.throws(() => layered(`x:${step}`).rename('x', dir.join(place), dir.join(aside)), /killed/);
      const paths = hostPaths({ state: dir.path, policy: dir.path, run: dir.path, socket: dir.path });
      recoverReplacedReleases(paths, createDurableFs());
      assert.deepEqual(fs.readdirSync(dir.join('archives/b')), ['1-0123456789ab'], step);
      assert.deepEqual([read(dir, place), isMovedSource(dir.join(place))], ['policy', false], step);
    }
  });

  it('recognizes an incomplete source after a crash during its removal', () => {
    using dir = tempDir();
    sample(dir);
    assert.throws(() => layered('x:copy-remove').rename('x', dir.join(place), dir.join(aside)), /killed/);
    fs.rmSync(dir.join(`${place}/in`), { recursive: true });
    const paths = hostPaths({ state: dir.path, policy: dir.path, run: dir.path, socket: dir.path });
    recoverReplacedReleases(paths, createDurableFs());
    assert.equal(read(dir, place), 'policy');
  });

  it('fails for a file, and for a path on another file system', () => {
    using dir = tempDir('/dev/shm');
    using other = tempDir('/var/tmp');
    sample(dir);
    const file = dir.join(`${place}/in/f`);
    throwsCode('PATH_CROSS_DEVICE', () => layered().rename('x', file, dir.join('f')));
    if (fs.statSync(other.path).dev === fs.statSync(dir.path).dev) return;
    throwsCode('PATH_CROSS_DEVICE', () => layered().rename('x', dir.join(place), other.join('moved')));
    assert.equal(read(dir, place), 'policy');
  });

  it('is tested without a change', () => {
    using dir = tempDir();
    sample(dir);
    assert.equal(canRenameDirectory(dir.join('archives'), dir.path), true);
    assert.equal(canRenameDirectory(dir.join('archives'), dir.join('absent')), undefined);
    assert.deepEqual(fs.readdirSync(dir.path), ['archives']);
  });
});

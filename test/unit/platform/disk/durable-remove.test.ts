// Trees that a malicious command has written to prevent their removal, or to cause the removal of other files.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import nodeFs, * as fs from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { needsMounts, runMounted } from '../../../kit/disk/mounted.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('removeTreeAt', () => {
  it('removes a tree deeper than the limits for paths and descriptors', () => {
    using dir = tempDir();
    writeDeepTree(dir.join('tree'), 1500);
    assert.throws(() => fs.lstatSync(dir.join('tree', ...Array(1500).fill('dddddd'))), {
      code: 'ENAMETOOLONG',
    });
    createDurableFs().removeTree('op', dir.join('tree'));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('removes names that are not UTF-8, and every kind of file', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('tree'));
    fs.mkdirSync(Buffer.concat([Buffer.from(dir.join('tree/')), Buffer.from([0xff, 0xfe])]));
    fs.writeFileSync(Buffer.concat([Buffer.from(dir.join('tree/')), Buffer.from([0xc3])]), '');
    fs.symlinkSync('/nonexistent', dir.join('tree/link'));
    execFileSync('mkfifo', [dir.join('tree/pipe')]);
    createDurableFs().removeTree('op', dir.join('tree'));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('removes directories without any permission', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('tree/a/b/c'), { recursive: true });
    fs.writeFileSync(dir.join('tree/a/b/c/f'), '');
    fs.chmodSync(dir.join('tree/a/b/c'), 0o500);
    fs.chmodSync(dir.join('tree/a/b'), 0);
    createDurableFs().removeTree('op', dir.join('tree'));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('does not follow a link that replaces a directory, whatever step it comes before', () => {
    using dir = tempDir();
    const disk = createDurableFs();
    const kept = ['a', 'b', 'c'];
    const remove = (swap: () => void, step: number): number => {
      fs.rmSync(dir.join('tree'), { recursive: true, force: true });
      for (const place of ['outside', 'tree/d/e']) {
        fs.mkdirSync(dir.join(place), { recursive: true });
        for (const file of kept) fs.writeFileSync(dir.join(`${place}/${file}`), '');
      }
      fs.symlinkSync(dir.join('outside'), dir.join('tree/link'));
      const steps = atStep(step, swap, () => disk.removeTree('op', dir.join('tree')));
      assert.deepEqual(fs.readdirSync(dir.join('outside')), kept, `step ${step}`);
      disk.removeTree('op', dir.join('tree'));
      return steps;
    };
    const steps = remove(() => undefined, 0);
    assert.ok(steps >= 15, `${steps} steps`);
    for (const which of [0, 1])
      for (let step = 1; step <= steps; step += 1)
        remove(() => {
          const below = fs.readdirSync(dir.join('tree'), { recursive: true, withFileTypes: true });
          const entry = below.filter((one) => one.isDirectory())[which];
          if (entry === undefined) return;
          const place = join(entry.parentPath, entry.name);
          fs.renameSync(place, dir.join('tree/old'));
          fs.symlinkSync(dir.join('outside'), place);
        }, step);
  });

  it(
    'leaves alone what has no text for a name where something is mounted beside it',
    needsMounts(),
    async () => {
      using dir = tempDir();
      fs.mkdirSync(dir.join('tree/mounted'), { recursive: true });
      const odd = Buffer.concat([Buffer.from(dir.join('tree/')), Buffer.from([0xff])]);
      fs.mkdirSync(odd);
      const { kind } = await runMounted(
        [`mount -t tmpfs tmpfs ${dir.join('tree/mounted')}`],
        `const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
      const odd = Buffer.from('${odd.toString('hex')}', 'hex');
      try { createDurableFs().removeTree('op', odd); } catch (error) { console.log(error.code); }`,
      );
      assert.equal(kind, 'exited');
      assert.equal(fs.existsSync(odd), true);
      createDurableFs().removeTree('op', odd);
      assert.deepEqual(fs.readdirSync(dir.join('tree')), ['mounted']);
    },
  );
});

/** Directories in one another, each with a file: through descriptors, as its path is too long at the end. */
function writeDeepTree(top: string, depth: number): void {
  fs.mkdirSync(top);
  let opened = fs.openSync(top, 'r');
  for (let level = 0; level < depth; level += 1) {
    const place = `/proc/self/fd/${opened}`;
    fs.writeFileSync(`${place}/f`, 'x');
    fs.mkdirSync(`${place}/dddddd`);
    const below = fs.openSync(`${place}/dddddd`, 'r');
    fs.closeSync(opened);
    opened = below;
  }
  fs.closeSync(opened);
}

const systemCalls = [
  'chmodSync',
  'fstatSync',
  'openSync',
  'readdirSync',
  'renameSync',
  'rmdirSync',
  'unlinkSync',
] as const;

/**
 * Removes with `act`, and calls `swap` before the system call with this number, as a lucky attacker. Ignores the error of the
 * attacked removal, which may leave a part of the tree.
 * @returns how many system calls there were
 */
function atStep(step: number, swap: () => void, act: () => void): number {
  let count = 0;
  const real = systemCalls.map((name) => [name, nodeFs[name]] as const);
  const restore = (): void => {
    for (const [name, call] of real) Object.assign(nodeFs, { [name]: call });
    syncBuiltinESMExports();
  };
  for (const [name, call] of real) {
    const counting = (...args: unknown[]): unknown => {
      count += 1;
      if (count === step) {
        restore();
        swap();
      }
      return (call as (...args: unknown[]) => unknown)(...args);
    };
    Object.assign(nodeFs, { [name]: counting });
  }
  syncBuiltinESMExports();
  try {
    act();
  } catch {
    // The removal met what it did not expect.
  } finally {
    restore();
  }
  return count;
}

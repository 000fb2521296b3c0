// Trees that a command has written to keep its traces, or to have somebody else's files removed.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { needsMounts, runMounted } from '../../../kit/disk/mounted.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('removing a tree', () => {
  it('removes one that is deeper than a path can be long, and than descriptors can be many', () => {
    using dir = tempDir();
    const script =
      'mkdir "$1"; cd "$1"; for i in $(seq 1500); do echo x >f; mkdir dddddd; cd -P dddddd || exit; done';
    execFileSync('sh', ['-c', script, 'sh', dir.join('tree')]);
    assert.throws(() => fs.lstatSync(dir.join('tree', ...Array(1500).fill('dddddd'))), {
      code: 'ENAMETOOLONG',
    });
    createDurableFs().removeTree('op', dir.join('tree'));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('removes names that are no text, and every kind of file', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('tree'));
    fs.mkdirSync(Buffer.concat([Buffer.from(dir.join('tree/')), Buffer.from([0xff, 0xfe])]));
    fs.writeFileSync(Buffer.concat([Buffer.from(dir.join('tree/')), Buffer.from([0xc3])]), '');
    fs.symlinkSync('/nonexistent', dir.join('tree/link'));
    execFileSync('mkfifo', [dir.join('tree/pipe')]);
    createDurableFs().removeTree('op', dir.join('tree'));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('removes directories that nobody may enter or change', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('tree/a/b/c'), { recursive: true });
    fs.writeFileSync(dir.join('tree/a/b/c/f'), '');
    fs.chmodSync(dir.join('tree/a/b/c'), 0o500);
    fs.chmodSync(dir.join('tree/a/b'), 0);
    createDurableFs().removeTree('op', dir.join('tree'));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('leaves alone what a link leads to that takes the place of a directory', async () => {
    using dir = tempDir();
    const disk = createDurableFs();
    // It races with the removal: a name that is gone already is what it is here for.
    const swap = `const fs = require('node:fs'); fs.writeSync(1, 'x');
      for (;;) for (const [from, to] of [['d', 'old'], ['link', 'd'], ['d', 'link'], ['old', 'd']])
        try { fs.renameSync(from, to); } catch {}`;
    for (let round = 0; round < 10; round++) {
      fs.mkdirSync(dir.join('outside'), { recursive: true });
      fs.mkdirSync(dir.join('tree/d'), { recursive: true });
      fs.symlinkSync(dir.join('outside'), dir.join('tree/link'));
      for (const place of ['outside', 'tree/d'])
        for (let file = 0; file < 200; file++) fs.writeFileSync(dir.join(`${place}/${file}`), '');
      const attacker = spawn(process.execPath, ['-e', swap], {
        cwd: dir.join('tree'),
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      const ended = once(attacker, 'exit');
      await once(attacker.stdout, 'data');
      const endMs = performance.now() + 300;
      while (fs.existsSync(dir.join('tree')) && performance.now() < endMs) {
        try {
          disk.removeTree('op', dir.join('tree'));
        } catch {
          // The attacker was faster: something is left, and nothing outside is gone.
        }
      }
      attacker.kill('SIGKILL');
      await ended;
      disk.removeTree('op', dir.join('tree'));
      assert.equal(fs.readdirSync(dir.join('outside')).length, 200);
    }
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

// The order of durable operations, the files that a failure at each of them leaves, and the resulting modes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs, isTemporaryName } from '../../../../src/platform/disk/durable-fs.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { runNodeScript } from '../../../kit/cli/child-script.js';
import { failing, modeOf, observed } from '../../../kit/disk/observed-fs.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';

describe('writeFile', () => {
  it('writes, renames and flushes the directory, in this order', () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    disk.writeFile('ledger', dir.join('ledger.json'), '{}', 0o600);
    assert.deepEqual(calls, [
      'before ledger:write',
      'after ledger:write',
      'before ledger:rename',
      'after ledger:rename',
      'before ledger:flush-directory',
      'after ledger:flush-directory',
    ]);
    assert.equal(fs.readFileSync(dir.join('ledger.json'), 'utf8'), '{}');
  });

  it('replaces the file as a new one, so that a reader keeps the bytes it opened', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('f'), 'old');
    const reader = fs.openSync(dir.join('f'), 'r');
    createDurableFs().writeFile('op', dir.join('f'), 'new', 0o600);
    assert.equal(fs.readFileSync(reader, 'utf8'), 'old');
    fs.closeSync(reader);
    assert.equal(fs.readFileSync(dir.join('f'), 'utf8'), 'new');
  });

  for (const op of ['op:write', 'op:rename']) {
    for (const side of ['before', 'after'] as const) {
      it(`keeps the old bytes or has the new ones, and no temporary file, when ${op} fails (${side})`, () => {
        using dir = tempDir();
        fs.writeFileSync(dir.join('f'), 'old');
        throwsCode('DISK_FAILED', () => failing(op, side).writeFile('op', dir.join('f'), 'new', 0o600));
        assert.deepEqual(fs.readdirSync(dir.path), ['f']);
        const renamed = op === 'op:rename' && side === 'after';
        assert.equal(fs.readFileSync(dir.join('f'), 'utf8'), renamed ? 'new' : 'old');
      });
    }
  }

  it('throws when the directory cannot be flushed', () => {
    using dir = tempDir();
    const disk = failing('op:flush-directory');
    const error = throwsCode('DISK_FAILED', () => disk.writeFile('op', dir.join('f'), 'new', 0o600));
    assert.equal(error.facts['op'], 'op:flush-directory');
    assert.equal(error.facts['path'], dir.path);
  });

  it('replaces a symbolic link and does not change its target', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('victim'), 'precious');
    fs.symlinkSync('victim', dir.join('f'));
    createDurableFs().writeFile('op', dir.join('f'), 'new', 0o600);
    assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), 'precious');
    assert.ok(fs.lstatSync(dir.join('f')).isFile());
  });

  it('uses temporary names that recovery recognizes', () => {
    using dir = tempDir();
    let seen: string[] = [];
    const disk = createDurableFs({
      after: ({ op }) => {
        if (op === 'op:write') seen = fs.readdirSync(dir.path);
      },
    });
    disk.writeFile('op', dir.join('f'), '', 0o600);
    assert.equal(seen.length, 1);
    assert.ok(isTemporaryName(seen[0] ?? ''));
    assert.ok(!isTemporaryName('ledger.json'));
  });
});

describe('createFile', () => {
  it('removes an incomplete file, so that the next attempt succeeds', () => {
    using dir = tempDir();
    const durableFs = createDurableFs();
    const broken = {} as unknown as string;
    throwsCode('DISK_FAILED', () => durableFs.createFile('op', dir.join('f'), broken, 0o600));
    assert.deepEqual(fs.readdirSync(dir.path), []);
    durableFs.createFile('op', dir.join('f'), 'whole', 0o600);
  });

  it('hints to correct a mistyped path, and does not blame the disk', () => {
    using dir = tempDir();
    const create = (path: string) => createDurableFs().createFile('op', dir.join(path), '', 0o600);
    assert.match(throwsCode('DISK_FAILED', () => create('none/f')).hint, /correct the path/);
    fs.writeFileSync(dir.join('file'), '');
    assert.match(throwsCode('DISK_FAILED', () => create('file/f')).hint, /correct the path/);
  });

  it('refuses to write over a file, a link, and a link to nowhere', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), 'old');
    fs.symlinkSync('file', dir.join('link'));
    fs.symlinkSync('nowhere', dir.join('dangling'));
    for (const name of ['file', 'link', 'dangling']) {
      throwsCode('DISK_FAILED', () => createDurableFs().createFile('op', dir.join(name), 'new', 0o600));
    }
    assert.equal(fs.readFileSync(dir.join('file'), 'utf8'), 'old');
    assert.ok(!fs.existsSync(dir.join('nowhere')));
  });

  it('writes bytes unchanged', () => {
    using dir = tempDir();
    createDurableFs().createFile('op', dir.join('f'), Buffer.from([0, 255, 10]), 0o640);
    assert.deepEqual([...fs.readFileSync(dir.join('f'))], [0, 255, 10]);
    assert.equal(modeOf(dir.join('f')), 0o640);
  });
});

describe('appendFile', () => {
  it('appends, and creates the file the first time', () => {
    using dir = tempDir();
    const disk = createDurableFs();
    disk.appendFile('history', dir.join('h'), 'one\n', 0o600);
    disk.appendFile('history', dir.join('h'), 'two\n', 0o600);
    assert.equal(fs.readFileSync(dir.join('h'), 'utf8'), 'one\ntwo\n');
  });

  it('flushes the directory once, after it created the file', () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    for (const line of ['one\n', 'two\n']) disk.appendFile('history', dir.join('h'), line, 0o600);
    const before = calls.filter((call) => call.startsWith('before'));
    assert.deepEqual(before, ['before history', 'before history:flush-directory', 'before history']);
  });

  it('does not follow a link', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('victim'), 'precious');
    fs.symlinkSync('victim', dir.join('h'));
    throwsCode('DISK_FAILED', () => createDurableFs().appendFile('history', dir.join('h'), 'x', 0o600));
    assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), 'precious');
  });
});

describe('rename', () => {
  it('flushes both directories, the one that gained the name first', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('staging', 'tree'), { recursive: true });
    fs.mkdirSync(dir.join('bundles'));
    const paths: string[] = [];
    const disk = createDurableFs({
      before: ({ op, path }) => paths.push(`${op} ${path.slice(dir.path.length)}`),
    });
    disk.rename('admit', dir.join('staging', 'tree'), dir.join('bundles', '7'));
    assert.deepEqual(paths, [
      'admit:rename /bundles/7',
      'admit:flush-to /bundles',
      'admit:flush-from /staging',
    ]);
    assert.ok(fs.existsSync(dir.join('bundles', '7')));
  });

  it('flushes one directory once', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('a'), '');
    const { disk, calls } = observed();
    disk.rename('op', dir.join('a'), dir.join('b'));
    assert.deepEqual(
      calls.filter((call) => call.startsWith('before')),
      ['before op:rename', 'before op:flush-to'],
    );
  });
});

describe('ensureDirectory', () => {
  const blocking: Readonly<Record<string, (path: string) => void>> = {
    file: (path) => fs.writeFileSync(path, 'x'),
    FIFO: (path) => execFileSync('mkfifo', [path]),
    'link to nowhere': (path) => fs.symlinkSync('/nowhere/at/all', path),
    'link to itself': (path) => fs.symlinkSync(path, path),
  };
  for (const [name, put] of Object.entries(blocking)) {
    it(`fails when a ${name} has the path, with the path and a hint`, () => {
      using dir = tempDir();
      const path = dir.join('directory');
      put(path);
      const { ino, mode } = fs.lstatSync(path);
      const error = throwsCode('DISK_FAILED', () => createDurableFs().ensureDirectory('op', path, 0o700));
      assert.equal(error.facts['path'], path);
      assert.ok(error.hint.includes(`mv ${path} ${path}.damaged`));
      const after = fs.lstatSync(path);
      assert.deepEqual([after.ino, after.mode], [ino, mode]);
    });
  }

  it('fails below a file and below a dangling link, with the path that is not a directory', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('file'), '');
    fs.symlinkSync('nowhere', dir.join('link'));
    for (const name of ['file', 'link']) {
      const ensure = () => createDurableFs().ensureDirectory('op', dir.join(name, 'a', 'b'), 0o700);
      assert.equal(throwsCode('DISK_FAILED', ensure).message, `${dir.join(name)} is not a directory`);
    }
  });

  it('fails when a device has the path, and does not hint to move it away', () => {
    const ensure = () => createDurableFs().ensureDirectory('op', '/dev/null', 0o700);
    assert.equal(throwsCode('DISK_FAILED', ensure).hint, 'Choose another path: this one is a device.');
  });

  it('accepts a link to a directory', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('real'));
    fs.symlinkSync('real', dir.join('directory'));
    createDurableFs().ensureDirectory('op', dir.join('directory'), 0o700);
    assert.ok(fs.lstatSync(dir.join('directory')).isSymbolicLink());
  });
});

describe('modes under umask 077', () => {
  const script = (dir: TempDir): string => `
    process.umask(0o077);
    const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
    const disk = createDurableFs();
    const path = (name) => ${JSON.stringify(`${dir.path}/`)} + name;
    disk.makeDirectory('op', path('made'), 0o755);
    disk.ensureDirectory('op', path('ensured'), 0o711);
    disk.writeFile('op', path('written'), 'x', 0o644);
    disk.createFile('op', path('created'), 'x', 0o755);
    disk.appendFile('op', path('appended'), 'x', 0o640);`;

  it('gives every file and directory exactly the given mode', async () => {
    using dir = tempDir();
    const result = await runNodeScript(script(dir));
    assert.equal(result.kind === 'exited' && result.exitCode, 0);
    const modes = fs.readdirSync(dir.path).map((name) => [name, modeOf(dir.join(name)).toString(8)]);
    assert.deepEqual(Object.fromEntries(modes), {
      made: '755',
      ensured: '711',
      written: '644',
      created: '755',
      appended: '640',
    });
  });

  it('creates a directory with its mode, so that workers can enter it after a crash', async () => {
    using dir = tempDir();
    const result = await runNodeScript(`
      process.umask(0o077);
      const fs = (await import('node:module')).createRequire(import.meta.url)('node:fs');
      fs.chmodSync = () => undefined;
      (await import('node:module')).syncBuiltinESMExports();
      const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
      createDurableFs().makeDirectory('op', ${JSON.stringify(dir.join('made'))}, 0o755);
      fs.writeFileSync(${JSON.stringify(dir.join('umask'))}, process.umask().toString(8));`);
    assert.equal(result.kind === 'exited' && result.exitCode, 0, JSON.stringify(result));
    assert.equal(modeOf(dir.join('made')).toString(8), '755');
    assert.equal(fs.readFileSync(dir.join('umask'), 'utf8'), '77', 'the umask of the process stays');
  });

  it('does not wait for the reader of a FIFO that replaced its file', () => {
    using dir = tempDir();
    execFileSync('mkfifo', [dir.join('events')]);
    throwsCode('DISK_FAILED', () => createDurableFs().appendFile('op', dir.join('events'), 'x', 0o600));
  });
});

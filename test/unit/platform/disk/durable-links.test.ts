// Links and directories of the durable layer: a replaced link is never absent, and a mounted file system is never removed.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { runNodeScript } from '../../../kit/cli/child-script.js';
import { failing, modeOf, observed } from '../../../kit/disk/observed-fs.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('replaceLink', () => {
  it('is one create, one rename and one flush', () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    disk.replaceLink('swap.link', dir.join('current'), 'generations/2', { temporaryName: '.current-c1' });
    assert.deepEqual(
      calls.filter((call) => call.startsWith('before')),
      ['before swap.link:create', 'before swap.link:rename', 'before swap.link:flush-directory'],
    );
    assert.equal(fs.readlinkSync(dir.join('current')), 'generations/2');
  });

  it('shows only the create and the rename to a watcher of the directory', async () => {
    using dir = tempDir();
    fs.symlinkSync('generations/1', dir.join('current'));
    const events: string[] = [];
    const watcher = fs.watch(dir.path, (type, name) => events.push(`${type} ${name}`));
    createDurableFs().replaceLink('swap.link', dir.join('current'), 'generations/2', {
      temporaryName: '.current-c1',
    });
    // Node sees a rename as two events, one for each name; the last one is the end of the swap.
    for (let tries = 0; tries < 12_000 && events.length < 3; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    watcher.close();
    assert.deepEqual(events, ['rename .current-c1', 'rename .current-c1', 'rename current']);
  });

  it('points at the old target in every state before the rename, and at the new one after it', () => {
    using dir = tempDir();
    fs.symlinkSync('generations/1', dir.join('current'));
    const targets: string[] = [];
    const observe = ({ op }: { op: string }): void => {
      targets.push(`${op} ${fs.readlinkSync(dir.join('current'))}`);
    };
    createDurableFs({ before: observe, after: observe }).replaceLink(
      's',
      dir.join('current'),
      'generations/2',
      {
        temporaryName: '.c',
      },
    );
    assert.deepEqual(targets, [
      's:create generations/1',
      's:create generations/1',
      's:rename generations/1',
      's:rename generations/2',
      's:flush-directory generations/2',
      's:flush-directory generations/2',
    ]);
  });

  it('keeps only the old link when the rename fails', () => {
    using dir = tempDir();
    fs.symlinkSync('generations/1', dir.join('current'));
    const disk = failing('swap.link:rename');
    throwsCode('DISK_FAILED', () =>
      disk.replaceLink('swap.link', dir.join('current'), 'generations/2', { temporaryName: '.c' }),
    );
    assert.deepEqual(fs.readdirSync(dir.path), ['current']);
    assert.equal(fs.readlinkSync(dir.join('current')), 'generations/1');
  });

  it('removes the link that an earlier attempt could not remove', () => {
    using dir = tempDir();
    const dead = failing('swap.link:rename');
    fs.symlinkSync('generations/1', dir.join('.c'));
    throwsCode('DISK_FAILED', () =>
      dead.replaceLink('swap.link', dir.join('current'), 'generations/2', { temporaryName: '.c' }),
    );
    fs.symlinkSync('generations/1', dir.join('.c'));
    createDurableFs().replaceLink('swap.link', dir.join('current'), 'generations/2', { temporaryName: '.c' });
    assert.deepEqual(fs.readdirSync(dir.path), ['current']);
    assert.equal(fs.readlinkSync(dir.join('current')), 'generations/2');
  });

  it('fails when the temporary name is taken, and does not change that file', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('.c'), 'mine');
    const disk = createDurableFs();
    throwsCode('DISK_FAILED', () =>
      disk.replaceLink('op', dir.join('current'), 'generations/2', { temporaryName: '.c' }),
    );
    assert.equal(fs.readFileSync(dir.join('.c'), 'utf8'), 'mine');
    assert.ok(!fs.existsSync(dir.join('current')));
  });
});

describe('linkFile', () => {
  it('links a file, flushes the directory, and leaves no temporary file', () => {
    using dir = tempDir();
    const operations: string[] = [];
    const durable = createDurableFs({ after: ({ op }) => operations.push(op) });
    fs.writeFileSync(dir.join('one'), 'bytes');
    fs.writeFileSync(dir.join('two'), 'other bytes');
    durable.linkFile('test', dir.join('one'), dir.join('two'));
    assert.deepEqual(operations, ['test:link', 'test:rename', 'test:flush-directory']);
    assert.equal(fs.readFileSync(dir.join('two'), 'utf8'), 'bytes');
    // Renamed onto each other, two names of one file would both stay.
    durable.linkFile('test', dir.join('one'), dir.join('two'));
    assert.deepEqual(fs.readdirSync(dir.path).sort(), ['one', 'two']);
  });

  it('copies when links are not possible, and flushes the copy before the rename', async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('one'), 'bytes');
    const result = await runNodeScript(`
      const module = await import('node:module');
      const fs = module.createRequire(import.meta.url)('node:fs');
      const [kernelFlush, kernelRename] = [fs.fsyncSync, fs.renameSync];
      const calls = [];
      fs.linkSync = () => { throw Object.assign(new Error('no links'), { code: 'EPERM' }); };
      fs.fsyncSync = (fd) => {
        calls.push(fs.fstatSync(fd).isDirectory() ? 'flush directory' : 'flush ' + fs.readFileSync(fd, 'utf8'));
        kernelFlush(fd);
      };
      fs.renameSync = (from, to) => { calls.push('rename'); kernelRename(from, to); };
      module.syncBuiltinESMExports();
      const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
      createDurableFs().linkFile('op', ${JSON.stringify(dir.join('one'))}, ${JSON.stringify(dir.join('two'))});
      console.log(calls.join(', '));`);
    assert.ok(result.kind === 'exited');
    assert.equal(result.stdout.trim(), 'flush bytes, rename, flush directory');
    assert.equal(fs.readFileSync(dir.join('two'), 'utf8'), 'bytes');
    assert.deepEqual(fs.readdirSync(dir.path).sort(), ['one', 'two']);
  });

  it('throws when the source does not exist', () => {
    using dir = tempDir();
    throwsCode('DISK_FAILED', () => createDurableFs().linkFile('test', dir.join('none'), dir.join('two')));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });
});

describe('directories, links and removal', () => {
  it('creates a directory once, and does not change an existing directory', () => {
    using dir = tempDir();
    const disk = createDurableFs();
    disk.makeDirectory('op', dir.join('d'), 0o700);
    throwsCode('DISK_FAILED', () => disk.makeDirectory('op', dir.join('d'), 0o755));
    disk.ensureDirectory('op', dir.join('d'), 0o755);
    assert.equal(modeOf(dir.join('d')), 0o700);
    disk.ensureDirectory('op', dir.join('e'), 0o711);
    assert.equal(modeOf(dir.join('e')), 0o711);
  });

  it('creates a directory with exactly the given mode when its parent has a default access list', () => {
    using dir = tempDir();
    fs.chmodSync(dir.path, 0o2755);
    createDurableFs().makeDirectory('op', dir.join('d'), 0o750);
    assert.equal(modeOf(dir.join('d')).toString(8), '750');
  });

  it('creates a link that must not exist', () => {
    using dir = tempDir();
    const disk = createDurableFs();
    disk.createLink('op', dir.join('l'), '../../bundles/x');
    assert.equal(fs.readlinkSync(dir.join('l')), '../../bundles/x');
    throwsCode('DISK_FAILED', () => disk.createLink('op', dir.join('l'), 'elsewhere'));
  });

  it('removes a link and not its target, and flushes; does nothing for a missing file', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('target'), 'stays');
    fs.symlinkSync('target', dir.join('l'));
    const { disk, calls } = observed();
    disk.removeFile('undo', dir.join('l'));
    assert.deepEqual(fs.readdirSync(dir.path), ['target']);
    assert.deepEqual(
      calls.filter((call) => call.startsWith('before')),
      ['before undo', 'before undo:flush-directory'],
    );
    disk.removeFile('undo', dir.join('l'));
    assert.equal(calls.length, 4);
  });

  it('removes a dangling link', () => {
    using dir = tempDir();
    fs.symlinkSync('nowhere', dir.join('l'));
    createDurableFs().removeFile('op', dir.join('l'));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });

  it('removes a tree without following its links', () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('outside'));
    fs.writeFileSync(dir.join('outside', 'f'), 'stays');
    fs.mkdirSync(dir.join('tree'));
    fs.symlinkSync('../outside', dir.join('tree', 'link'));
    const disk = createDurableFs();
    disk.removeTree('op', dir.join('tree'));
    disk.removeTree('op', dir.join('tree'));
    assert.deepEqual(fs.readdirSync(dir.path), ['outside']);
    assert.ok(fs.existsSync(dir.join('outside', 'f')));
  });
});

// Flushes of the durable layer, the files that a killed process leaves, and the errors of a failing disk.
import assert from 'node:assert/strict';
import { createHook } from 'node:async_hooks';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import type { ErrorCode, WritError } from '../../../../src/core/errors.js';
import {
  createDurableFs,
  type DurableFs,
  diskError,
  isTemporaryName,
} from '../../../../src/platform/disk/durable-fs.js';
import { rejectsCode, throwsCode } from '../../../kit/assert/assert-code.js';
import { failing, modeOf, observed } from '../../../kit/disk/observed-fs.js';
import { onDisk, tempDir } from '../../../kit/disk/temp-dir.js';

const noTmpfs = fs.existsSync('/dev/shm') ? false : 'this machine has no /dev/shm';

/** @returns how many programs this process started meanwhile */
async function countStarted(act: () => Promise<unknown>): Promise<number> {
  let started = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === 'PROCESSWRAP') started += 1;
    },
  }).enable();
  await act();
  hook.disable();
  return started;
}

describe('flushing', () => {
  it('flushes an open file through the descriptor that wrote it', () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    const descriptor = fs.openSync(dir.join('archive'), 'w');
    disk.flushDescriptor('fetch.archive', descriptor, dir.join('archive'));
    fs.closeSync(descriptor);
    assert.deepEqual(calls, ['before fetch.archive', 'after fetch.archive']);
    // The kernel has removed this file, so the descriptor that wrote it was used.
    throwsCode('DISK_FAILED', () => disk.flushDescriptor('op', descriptor, dir.join('archive')));
  });

  it('refuses to flush a file as a directory', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('f'), '');
    throwsCode('DISK_FAILED', () => createDurableFs().flushDirectory('op', dir.join('f')));
  });

  it('flushes a tree on a disk by one program and reports its failure', async () => {
    using dir = tempDir(onDisk());
    const { disk, calls } = observed();
    assert.equal(await countStarted(() => disk.flushTree('flush', dir.path)), 1);
    assert.deepEqual(calls, ['before flush', 'after flush']);
    const error = await rejectsCode('DISK_FAILED', disk.flushTree('flush', dir.join('missing')));
    assert.equal(error.facts['op'], 'flush');
  });

  it('starts no program for a tree on a tmpfs, which a power cut empties', { skip: noTmpfs }, async () => {
    using dir = tempDir('/dev/shm');
    const { disk, calls } = observed();
    assert.equal(await countStarted(() => disk.flushTree('flush', dir.path)), 0);
    assert.deepEqual(calls, ['before flush', 'after flush']);
  });

  it('reports an injected error of the flush of a tree as an error of the disk', async () => {
    using dir = tempDir();
    await rejectsCode('DISK_FULL', failing('flush', 'after', 'ENOSPC').flushTree('flush', dir.path));
  });
});

describe('open files', () => {
  it('are written in pieces, each with its label, and set to a time and a group', () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    const path = dir.join('f');
    const groupId = process.getgid?.() ?? 0;
    const descriptor = disk.openNew('f:create', path, { mode: 0o640, groupId });
    disk.write('f:write', { descriptor, path }, Buffer.from('one two'));
    disk.write('f:write', { descriptor, path }, Buffer.from(' three'));
    disk.write('f:write', { descriptor, path }, Buffer.from('ONE'), 0);
    disk.setTime('f:time', { descriptor, path }, 1_000_000);
    fs.closeSync(descriptor);
    assert.equal(fs.readFileSync(path, 'utf8'), 'ONE two three');
    assert.equal(modeOf(path), 0o640);
    assert.equal(fs.statSync(path).mtimeMs, 1_000_000_000);
    disk.touch('f:touch', path, 2_000_000);
    assert.equal(fs.statSync(path).mtimeMs, 2_000_000_000);
    disk.changeMode('f:mode', path, 0o600);
    disk.changeGroup('f:group', path, groupId);
    assert.equal(modeOf(path), 0o600);
    assert.deepEqual(
      calls.filter((call) => call.startsWith('after')),
      ['create', 'write', 'write', 'write', 'time', 'touch', 'mode', 'group'].map((one) => `after f:${one}`),
    );
  });

  it('are never opened through an existing file or link', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('victim'), 'precious');
    fs.symlinkSync('victim', dir.join('link'));
    throwsCode('DISK_FAILED', () => createDurableFs().openNew('op', dir.join('link'), { mode: 0o600 }));
    throwsCode('DISK_FAILED', () => createDurableFs().openKept('op', dir.join('link'), 0o600));
    assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), 'precious');
  });

  it('keep their content when opened again, and are rewritten completely', () => {
    using dir = tempDir();
    const disk = createDurableFs();
    const path = dir.join('lock');
    for (const text of ['the first and longer one', 'second']) {
      const descriptor = disk.openKept('lock.open', path, 0o600);
      disk.rewrite('lock.holder', { descriptor, path }, text);
      fs.closeSync(descriptor);
    }
    assert.equal(fs.readFileSync(path, 'utf8'), 'second');
  });

  it('creates a new scratch directory for each call', () => {
    using dir = tempDir();
    const disk = createDurableFs();
    const made = [1, 2].map(() => disk.makeScratch('hook.home', dir.join('hook-')));
    assert.equal(new Set(made).size, 2);
    assert.deepEqual(made.map(modeOf), [0o700, 0o700]);
  });
});

describe('a process that dies', () => {
  const killed = { killed: true };
  /** From the first operation of this label on, nothing is done any more. */
  function dying(label: string): DurableFs {
    let dead = false;
    const before = ({ op }: { readonly op: string }): void => {
      dead ||= op === label;
      if (dead) throw killed;
    };
    return createDurableFs({ before });
  }
  const isKilled = (error: unknown): boolean => error === killed;

  it('skips the cleanup, and throws the error that killed it unchanged', () => {
    using dir = tempDir();
    assert.throws(() => dying('op:rename').writeFile('op', dir.join('f'), 'new', 0o600), isKilled);
    assert.equal(fs.readdirSync(dir.path).filter(isTemporaryName).length, 1);
    assert.throws(
      () => dying('l:rename').replaceLink('l', dir.join('current'), 'g/2', { temporaryName: '.c' }),
      isKilled,
    );
    assert.equal(fs.readlinkSync(dir.join('.c')), 'g/2');
    fs.writeFileSync(dir.join('source'), '');
    assert.throws(() => dying('k:rename').linkFile('k', dir.join('source'), dir.join('to')), isKilled);
    assert.equal(fs.readdirSync(dir.path).filter(isTemporaryName).length, 2);
  });

  it('ignores a failed discard of a file, unless the process is dead', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('f'), '');
    failing('op:discard').discardFile('op:discard', dir.join('f'));
    assert.throws(() => dying('op:discard').discardFile('op:discard', dir.join('f')), isKilled);
    assert.ok(fs.existsSync(dir.join('f')));
    createDurableFs().discardFile('op:discard', dir.join('f'));
    createDurableFs().discardFile('op:discard', dir.join('f'));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });
});

describe('errors of the disk', () => {
  const table: readonly [string, ErrorCode][] = [
    ['ENOSPC', 'DISK_FULL'],
    ['EDQUOT', 'DISK_QUOTA'],
    ['EMFILE', 'TOO_MANY_FILES'],
    ['ENFILE', 'TOO_MANY_FILES'],
    ['EROFS', 'DISK_READ_ONLY'],
    ['EACCES', 'DISK_DENIED'],
    ['EPERM', 'DISK_DENIED'],
    ['EXDEV', 'PATH_CROSS_DEVICE'],
    ['EIO', 'DISK_FAILED'],
    ['ENOENT', 'DISK_FAILED'],
  ];
  for (const [errno, code] of table) {
    it(`calls ${errno} ${code}, naming operation, path and cause`, () => {
      using dir = tempDir();
      const disk = failing('op:rename', 'before', errno);
      const error = throwsCode(code, () => disk.writeFile('op', dir.join('f'), '', 0o600));
      assert.deepEqual(error.facts, { op: 'op:rename', path: dir.join('f'), errno });
      assert.ok(error.message.includes(dir.join('f')), error.message);
      assert.equal((error.cause as NodeJS.ErrnoException).code, errno);
    });
  }

  it('name the action, the path, the reason and the fix; the label is a fact', () => {
    using dir = tempDir();
    const path = dir.join('sub/f');
    const mkdir = throwsCode('DISK_FAILED', () =>
      createDurableFs().makeDirectory('prepare.private', path, 0o700),
    );
    assert.equal(mkdir.message, `cannot create the directory ${path}: no such file or directory (ENOENT)`);
    assert.equal(mkdir.facts['op'], 'prepare.private');
    const write = throwsCode('DISK_FAILED', () => createDurableFs().writeFile('state.save', path, '', 0o600));
    assert.equal(write.message, `cannot open ${path}: no such file or directory (ENOENT)`);
    fs.writeFileSync(dir.join('sub'), '');
    const blocking = throwsCode('DISK_FAILED', () =>
      createDurableFs().ensureDirectory('prepare.private', dir.join('sub'), 0o700),
    );
    assert.equal(blocking.message, `${dir.join('sub')} is not a directory`);
    const denied = Object.assign(new Error("EACCES: permission denied, rename '/a' -> '/b'"), {
      ...{ code: 'EACCES', syscall: 'rename', path: '/a', dest: '/b' },
    });
    const { message, hint } = diskError(denied, { op: 'swap.link', path: '/b' }) as WritError;
    assert.equal(message, 'cannot rename /a to /b: permission denied (EACCES)');
    assert.match(hint ?? '', /^`namei -l \/b` shows owner and mode/);
    const flush = Object.assign(new Error('EIO: i/o error, fsync'), { code: 'EIO', syscall: 'fsync' });
    const lost = diskError(flush, { op: 'x:flush', path: '/b' }) as WritError;
    assert.equal(lost.message, 'cannot flush /b: i/o error (EIO)');
  });

  it('returns other errors unchanged', () => {
    const bug = new TypeError('a bug');
    const disk = createDurableFs({
      before: () => {
        throw bug;
      },
    });
    assert.throws(
      () => disk.makeDirectory('op', '/nowhere', 0o700),
      (error) => error === bug,
    );
  });
});

// The order of durable operations, what a failure at each of them leaves behind, and the modes that result.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import type { ErrorCode } from '../../src/core/errors.js';
import { createDurableFs, type DurableFs, isTemporaryName } from '../../src/platform/durable-fs.js';
import { rejectsCode, throwsCode } from '../support/assert-code.js';
import { runScript } from '../support/child-script.js';
import { type TempDir, tempDir } from '../support/temp-dir.js';

interface Observed {
  readonly disk: DurableFs;
  /** `before swap.link:rename`, in order. */
  readonly calls: string[];
}

/** A durable file layer that writes down its operations. */
function observed(): Observed {
  const calls: string[] = [];
  const disk = createDurableFs({
    before: ({ op }) => calls.push(`before ${op}`),
    after: ({ op }) => calls.push(`after ${op}`),
  });
  return { disk, calls };
}

type Side = 'before' | 'after';

/** A durable file layer on which one operation fails as the kernel would make it fail. */
function failing(op: string, side: Side = 'before', errno = 'EIO'): DurableFs {
  const fail = (operation: { op: string }): void => {
    if (operation.op === op) throw Object.assign(new Error(`${errno}: injected`), { code: errno });
  };
  return createDurableFs({ [side]: fail });
}

function modeOf(path: string): number {
  return fs.lstatSync(path).mode & 0o7777;
}

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

  it('says so when the directory cannot be flushed', () => {
    using dir = tempDir();
    const disk = failing('op:flush-directory');
    const error = throwsCode('DISK_FAILED', () => disk.writeFile('op', dir.join('f'), 'new', 0o600));
    assert.equal(error.facts['op'], 'op:flush-directory');
    assert.equal(error.facts['path'], dir.path);
  });

  it('replaces a symbolic link and leaves alone what it points at', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('victim'), 'precious');
    fs.symlinkSync('victim', dir.join('f'));
    createDurableFs().writeFile('op', dir.join('f'), 'new', 0o600);
    assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), 'precious');
    assert.ok(fs.lstatSync(dir.join('f')).isFile());
  });

  it('uses names that recovery can tell from others', () => {
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
  it('leaves no half file behind that would refuse the next try', () => {
    using dir = tempDir();
    const durableFs = createDurableFs();
    const broken = {} as unknown as string;
    throwsCode('DISK_FAILED', () => durableFs.createFile('op', dir.join('f'), broken, 0o600));
    assert.deepEqual(fs.readdirSync(dir.path), []);
    durableFs.createFile('op', dir.join('f'), 'whole', 0o600);
  });

  it('says of a path that was mistyped what to do, and nothing of the disk', () => {
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

  it('writes bytes as they are', () => {
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

  it('flushes the directory once, behind the file that it has created', () => {
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

describe('replaceLink', () => {
  it('is one create, one rename and one flush', () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    disk.replaceLink('swap.link', dir.join('current'), 'generations/2', '.current-c1');
    assert.deepEqual(
      calls.filter((call) => call.startsWith('before')),
      ['before swap.link:create', 'before swap.link:rename', 'before swap.link:flush-directory'],
    );
    assert.equal(fs.readlinkSync(dir.join('current')), 'generations/2');
  });

  it('shows a watcher of the directory nothing but that create and that rename', async () => {
    using dir = tempDir();
    fs.symlinkSync('generations/1', dir.join('current'));
    const events: string[] = [];
    const watcher = fs.watch(dir.path, (type, name) => events.push(`${type} ${name}`));
    createDurableFs().replaceLink('swap.link', dir.join('current'), 'generations/2', '.current-c1');
    // Node sees a rename as two events, one for each name; the last one is the end of the swap.
    for (let tries = 0; tries < 500 && events.length < 3; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    watcher.close();
    assert.deepEqual(events, ['rename .current-c1', 'rename .current-c1', 'rename current']);
  });

  it('points at the old target in every state before the rename, and at the new one after it', () => {
    using dir = tempDir();
    fs.symlinkSync('generations/1', dir.join('current'));
    const targets: string[] = [];
    const look = ({ op }: { op: string }): void => {
      targets.push(`${op} ${fs.readlinkSync(dir.join('current'))}`);
    };
    createDurableFs({ before: look, after: look }).replaceLink(
      's',
      dir.join('current'),
      'generations/2',
      '.c',
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

  it('leaves the old link, and no other, when the rename fails', () => {
    using dir = tempDir();
    fs.symlinkSync('generations/1', dir.join('current'));
    const disk = failing('swap.link:rename');
    throwsCode('DISK_FAILED', () =>
      disk.replaceLink('swap.link', dir.join('current'), 'generations/2', '.c'),
    );
    assert.deepEqual(fs.readdirSync(dir.path), ['current']);
    assert.equal(fs.readlinkSync(dir.join('current')), 'generations/1');
  });

  it('takes away the link that an earlier try could not take away', () => {
    using dir = tempDir();
    const dead = failing('swap.link:rename');
    fs.symlinkSync('generations/1', dir.join('.c'));
    throwsCode('DISK_FAILED', () =>
      dead.replaceLink('swap.link', dir.join('current'), 'generations/2', '.c'),
    );
    fs.symlinkSync('generations/1', dir.join('.c'));
    createDurableFs().replaceLink('swap.link', dir.join('current'), 'generations/2', '.c');
    assert.deepEqual(fs.readdirSync(dir.path), ['current']);
    assert.equal(fs.readlinkSync(dir.join('current')), 'generations/2');
  });

  it('refuses a temporary name that is taken, and leaves it alone', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('.c'), 'mine');
    const disk = createDurableFs();
    throwsCode('DISK_FAILED', () => disk.replaceLink('op', dir.join('current'), 'generations/2', '.c'));
    assert.equal(fs.readFileSync(dir.join('.c'), 'utf8'), 'mine');
    assert.ok(!fs.existsSync(dir.join('current')));
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

describe('linkFile', () => {
  it('gives a file a second name, flushes the directory, and leaves no temporary one', () => {
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

  it('says that there is nothing to link', () => {
    using dir = tempDir();
    throwsCode('DISK_FAILED', () => createDurableFs().linkFile('test', dir.join('none'), dir.join('two')));
    assert.deepEqual(fs.readdirSync(dir.path), []);
  });
});

describe('directories, links and removal', () => {
  it('makes a directory once, and leaves one that is there alone', () => {
    using dir = tempDir();
    const disk = createDurableFs();
    disk.makeDirectory('op', dir.join('d'), 0o700);
    throwsCode('DISK_FAILED', () => disk.makeDirectory('op', dir.join('d'), 0o755));
    disk.ensureDirectory('op', dir.join('d'), 0o755);
    assert.equal(modeOf(dir.join('d')), 0o700);
    disk.ensureDirectory('op', dir.join('e'), 0o711);
    assert.equal(modeOf(dir.join('e')), 0o711);
  });

  it('creates a link that must not exist', () => {
    using dir = tempDir();
    const disk = createDurableFs();
    disk.createLink('op', dir.join('l'), '../../bundles/x');
    assert.equal(fs.readlinkSync(dir.join('l')), '../../bundles/x');
    throwsCode('DISK_FAILED', () => disk.createLink('op', dir.join('l'), 'elsewhere'));
  });

  it('removes a link and not its target, and flushes; nothing to remove is nothing to do', () => {
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

describe('flushing', () => {
  it('flushes an open file through the descriptor that wrote it', () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    const descriptor = fs.openSync(dir.join('archive'), 'w');
    disk.flushDescriptor('fetch.archive', descriptor, dir.join('archive'));
    fs.closeSync(descriptor);
    assert.deepEqual(calls, ['before fetch.archive', 'after fetch.archive']);
  });

  it('refuses to flush as a directory what is none', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('f'), '');
    throwsCode('DISK_FAILED', () => createDurableFs().flushDirectory('op', dir.join('f')));
  });

  it('flushes a tree by one program and reports its failure', async () => {
    using dir = tempDir();
    const { disk, calls } = observed();
    await disk.flushTree('flush', dir.path);
    assert.deepEqual(calls, ['before flush', 'after flush']);
    const error = await rejectsCode('DISK_FAILED', disk.flushTree('flush', dir.join('missing')));
    assert.equal(error.facts['op'], 'flush');
  });

  it('takes an error injected into the flush of a tree for the disk that it is', async () => {
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

  it('are never what somebody else put there', () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('victim'), 'precious');
    fs.symlinkSync('victim', dir.join('link'));
    throwsCode('DISK_FAILED', () => createDurableFs().openNew('op', dir.join('link'), { mode: 0o600 }));
    throwsCode('DISK_FAILED', () => createDurableFs().openKept('op', dir.join('link'), 0o600));
    assert.equal(fs.readFileSync(dir.join('victim'), 'utf8'), 'precious');
  });

  it('are kept and rewritten whole', () => {
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

  it('makes a scratch directory of its own each time', () => {
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

  it('cleans up nothing, and what killed it is thrown as it is', () => {
    using dir = tempDir();
    assert.throws(() => dying('op:rename').writeFile('op', dir.join('f'), 'new', 0o600), isKilled);
    assert.equal(fs.readdirSync(dir.path).filter(isTemporaryName).length, 1);
    assert.throws(() => dying('l:rename').replaceLink('l', dir.join('current'), 'g/2', '.c'), isKilled);
    assert.equal(fs.readlinkSync(dir.join('.c')), 'g/2');
    fs.writeFileSync(dir.join('source'), '');
    assert.throws(() => dying('k:rename').linkFile('k', dir.join('source'), dir.join('to')), isKilled);
    assert.equal(fs.readdirSync(dir.path).filter(isTemporaryName).length, 2);
  });

  it('is not told that a file could not be discarded, unless it is dead', () => {
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
      assert.equal((error.cause as NodeJS.ErrnoException).code, errno);
    });
  }

  it('passes on what is no error of the disk', () => {
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

describe('modes under umask 077', () => {
  const script = (dir: TempDir): string => `
    process.umask(0o077);
    const { createDurableFs } = await import(at('src/platform/durable-fs.js'));
    const disk = createDurableFs();
    const path = (name) => ${JSON.stringify(`${dir.path}/`)} + name;
    disk.makeDirectory('op', path('made'), 0o755);
    disk.ensureDirectory('op', path('ensured'), 0o711);
    disk.writeFile('op', path('written'), 'x', 0o644);
    disk.createFile('op', path('created'), 'x', 0o755);
    disk.appendFile('op', path('appended'), 'x', 0o640);`;

  it('gives every file and directory exactly the mode asked for', async () => {
    using dir = tempDir();
    const result = await runScript(script(dir));
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

  it('gives a directory its mode as it makes it: a crash right behind leaves one that workers can enter', async () => {
    using dir = tempDir();
    const result = await runScript(`
      process.umask(0o077);
      const fs = (await import('node:module')).createRequire(import.meta.url)('node:fs');
      fs.chmodSync = () => undefined;
      (await import('node:module')).syncBuiltinESMExports();
      const { createDurableFs } = await import(at('src/platform/durable-fs.js'));
      createDurableFs().makeDirectory('op', ${JSON.stringify(dir.join('made'))}, 0o755);
      fs.writeFileSync(${JSON.stringify(dir.join('umask'))}, process.umask().toString(8));`);
    assert.equal(result.kind === 'exited' && result.exitCode, 0, JSON.stringify(result));
    assert.equal(modeOf(dir.join('made')).toString(8), '755');
    assert.equal(fs.readFileSync(dir.join('umask'), 'utf8'), '77', 'the umask of the process stays');
  });
});

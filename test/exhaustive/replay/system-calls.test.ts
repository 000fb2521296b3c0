// The lines of strace and the operations of their calls: the translation must lose nothing.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { type FileOperation, operationsOf } from './recorded-operations.js';
import { bytesOf, descriptorOf, parseTrace } from './system-calls.js';

const hex = (text: string): string =>
  [...Buffer.from(text)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('');
const quoted = (text: string): string => `"${hex(text)}"`;
const file = (path: string, number = 19): string => `${number}<${hex(path)}>`;

function read(...lines: string[]): FileOperation[] {
  const directory = { root: '/disk', umask: 0o077, acknowledgement: '"outcome"' };
  return operationsOf(parseTrace(lines.map((line) => `7 ${line}\n`).join('')), directory);
}

describe('the lines of strace', () => {
  it('become calls with arguments, results and bytes', () => {
    const [call] = parseTrace(`12 pwrite64(${file('/disk/a')}, ${quoted('a,)\0"')}, 5, 4096) = 5\n`);
    assert.deepEqual([call?.name, call?.args.length, call?.result], ['pwrite64', 4, 5]);
    assert.equal(bytesOf(call?.args[1]).toString(), 'a,)\0"');
    assert.deepEqual(descriptorOf(call?.args[0]), { path: '/disk/a', deleted: false });
    assert.deepEqual(descriptorOf(`${file('/disk/a')}(deleted)`), { path: '/disk/a', deleted: true });
    assert.equal(descriptorOf('4'), undefined);
  });

  it('of calls that were interrupted by another thread are joined, in the order in which they ended', () => {
    const trace = [
      `1 fsync(${file('/disk/a')} <unfinished ...>`,
      `2 fsync(${file('/disk/b')}) = 0`,
      '1 <... fsync resumed>) = 0',
      '1 +++ exited with 0 +++',
    ].join('\n');
    assert.deepEqual(
      parseTrace(trace).map(({ args }) => descriptorOf(args[0])?.path),
      ['/disk/b', '/disk/a'],
    );
  });

  it('that are cut, or of no known form, fail the recording', () => {
    assert.throws(() => parseTrace('1 what is this\n'));
    assert.throws(() => parseTrace('1 <... fsync resumed>) = 0\n'));
    assert.throws(() => bytesOf(`"${hex('cut')}"...`));
  });
});

describe('recorded operations', () => {
  it('are what the calls did, with the umask of that moment', () => {
    const operations = read(
      `openat(AT_FDCWD<${hex('/')}>, ${quoted('/disk/a')}, O_WRONLY|O_CREAT|O_EXCL, 0666) = ${file('/disk/a')}`,
      `write(${file('/disk/a')}, ${quoted('hello')}, 5) = 3`,
      `writev(${file('/disk/a')}, [{iov_base=${quoted('l')}, iov_len=1}, {iov_base=${quoted('o')}, iov_len=1}], 2) = 2`,
      'umask(000) = 077',
      `mkdir(${quoted('/disk/d')}, 0755) = 0`,
      'umask(077) = 000',
      `mkdirat(${file('/disk/d')}, ${quoted('e')}, 0755) = 0`,
      `symlink(${quoted('d/e')}, ${quoted('/disk/l')}) = 0`,
      `rename(${quoted('/disk/a')}, ${quoted('/disk/d/../b')}) = 0`,
      `utimensat(${file('/disk/b')}, NULL, [{tv_sec=5, tv_nsec=0} /* x */, {tv_sec=6, tv_nsec=0} /* y */], 0) = 0`,
      `fsync(${file('/disk')}) = 0`,
      `fdatasync(${file('/disk/b')}) = 0`,
      `syncfs(${file('/disk/d')}) = 0`,
      `write(1<${hex('pipe:[1]')}>, ${quoted('{"outcome":"activated"}')}, 23) = 23`,
    );
    assert.deepEqual(operations, [
      { kind: 'create', path: 'a', mode: 0o600 },
      { kind: 'open', path: 'a', at: 'begin' },
      { kind: 'write', path: 'a', offset: 'next', bytes: Buffer.from('hel') },
      { kind: 'write', path: 'a', offset: 'next', bytes: Buffer.from('lo') },
      { kind: 'mkdir', path: 'd', mode: 0o755 },
      { kind: 'mkdir', path: 'd/e', mode: 0o700 },
      { kind: 'symlink', path: 'l', target: 'd/e' },
      { kind: 'rename', from: 'a', path: 'b' },
      { kind: 'times', path: 'b', mtimeSeconds: 6 },
      { kind: 'flush', path: '.', what: 'all' },
      { kind: 'flush', path: 'b', what: 'data' },
      { kind: 'flush-all' },
      { kind: 'acknowledged' },
    ]);
  });

  it('leave out what failed, what reads, and what lies elsewhere', () => {
    const operations = read(
      `mkdir(${quoted('/disk/d')}, 0755) = -1 EEXIST (File exists)`,
      `openat(AT_FDCWD<${hex('/')}>, ${quoted('/disk/a')}, O_RDONLY|O_CLOEXEC) = ${file('/disk/a')}`,
      `mmap(NULL, 4096, PROT_READ, MAP_SHARED, ${file('/disk/a')}, 0) = 1`,
      `rename(${quoted('/diskette/a')}, ${quoted('/diskette/b')}) = 0`,
      `write(${file('/disk/a')}(deleted), ${quoted('gone')}, 4) = 4`,
      `close(${file('/disk/a')}) = 0`,
      'io_uring_setup(256, {flags=0x10000 /* IORING_SETUP_??? */, features=IORING_FEAT_SQPOLL_NONFIXED}) = 9',
    );
    assert.deepEqual(operations, []);
  });

  const unknown = {
    'a call without a translation': `fallocate(${file('/disk/a')}, 0, 0, 4096) = 0`,
    'a copy inside the kernel': `copy_file_range(${file('/x')}, NULL, ${file('/disk/a')}, NULL, 5, 0) = 5`,
    'a clone of blocks': `ioctl(${file('/disk/a')}, BTRFS_IOC_CLONE or FICLONE, 4) = 0`,
    'writing to memory that is the file': `mmap(NULL, 9, PROT_READ|PROT_WRITE, MAP_SHARED, ${file('/disk/a')}, 0) = 1`,
    'an exchange of names': `renameat2(AT_FDCWD<${hex('/')}>, ${quoted('/disk/a')}, AT_FDCWD<${hex('/')}>, ${quoted('/disk/b')}, RENAME_EXCHANGE) = 0`,
    'a move out of the directory': `rename(${quoted('/disk/a')}, ${quoted('/elsewhere')}) = 0`,
    'calls that hide in a ring': 'io_uring_setup(64, {flags=IORING_SETUP_SQPOLL|0x10000, sq_entries=64}) = 9',
    'a write that flushes by itself': `openat(AT_FDCWD<${hex('/')}>, ${quoted('/disk/a')}, O_WRONLY|O_DSYNC) = 3`,
  };
  for (const [what, line] of Object.entries(unknown)) {
    it(`fail for ${what}`, () => assert.throws(() => read(line)));
  }
});

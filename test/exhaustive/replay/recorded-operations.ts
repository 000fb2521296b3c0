// Translates system calls to operations on the files below one directory, byte for byte. A call that is not known to be
// harmless and cannot be translated fails the recording, because a crash test of an incomplete recording proves nothing.
import { join, normalize } from 'node:path';
import { bytesOf, descriptorOf, pathsIn, type SystemCall } from './system-calls.js';

/** An operation on a path, relative to the recorded directory, with the names of that moment. */
export type FileOperation =
  | { readonly kind: 'create' | 'mkdir'; readonly path: string; readonly mode: number }
  /** Opened for writing: the next write without an offset goes to the start or the end. */
  | { readonly kind: 'open'; readonly path: string; readonly at: 'begin' | 'end' }
  | { readonly kind: 'symlink'; readonly path: string; readonly target: string }
  | { readonly kind: 'link' | 'rename'; readonly from: string; readonly path: string }
  | { readonly kind: 'unlink' | 'rmdir'; readonly path: string }
  | {
      readonly kind: 'write';
      readonly path: string;
      readonly offset: number | 'next';
      readonly bytes: Buffer;
    }
  | { readonly kind: 'truncate'; readonly path: string; readonly size: number }
  | { readonly kind: 'mode'; readonly path: string; readonly mode: number }
  | { readonly kind: 'times'; readonly path: string; readonly mtimeSeconds: number }
  /** `data`: as fdatasync, the content without the mode. */
  | { readonly kind: 'flush'; readonly path: string; readonly what: 'all' | 'data' }
  /** `sync -f`: the whole file system. */
  | { readonly kind: 'flush-all' }
  /** The command reported its result: from here on the update must not be lost. */
  | { readonly kind: 'acknowledged' };

/** Calls that only read, which strace does not need to print. */
export const readingCalls: readonly string[] = [
  ...['read', 'pread64', 'readv', 'preadv', 'preadv2', 'lseek', 'getdents64', 'readlink', 'readlinkat'],
  ...[
    'stat',
    'fstat',
    'lstat',
    'newfstatat',
    'statx',
    'access',
    'faccessat',
    'faccessat2',
    'statfs',
    'fstatfs',
  ],
  ...['munmap', 'mprotect', 'madvise', 'brk', 'futex', 'poll', 'ppoll', 'sched_yield', 'getpid', 'gettid'],
  ...['epoll_wait', 'epoll_pwait', 'epoll_pwait2', 'rt_sigaction', 'rt_sigprocmask', 'clock_nanosleep'],
  ...[
    'getuid',
    'geteuid',
    'getgid',
    'getegid',
    'capget',
    'prlimit64',
    'getrandom',
    'rseq',
    'set_robust_list',
  ],
];

/** Printed calls without effect on files: descriptors, and locks, which a crash releases. */
const harmlessCalls: ReadonlySet<string> = new Set([
  ...[
    'close',
    'close_range',
    'dup',
    'dup2',
    'dup3',
    'fcntl',
    'flock',
    'chdir',
    'getcwd',
    'epoll_ctl',
    'execve',
  ],
]);

export interface RecordedDirectory {
  /** Real path. */
  readonly root: string;
  /** The umask of the recorded process at its start. */
  readonly umask: number;
  /** A write to stdout that contains this text is the acknowledgement. */
  readonly acknowledgement: string;
}

/** @throws Error that names the first call without a translation */
export function operationsOf(calls: readonly SystemCall[], directory: RecordedDirectory): FileOperation[] {
  let { umask } = directory;
  return calls.flatMap((call) => {
    // Only the main process creates files; its children flush and lock.
    if (call.name === 'umask') umask = octal(call.args[0]);
    if (isFileRing(call)) throw notUnderstood(call);
    if (call.result < 0) return [];
    if (isAcknowledgement(call, directory)) return [{ kind: 'acknowledged' }];
    const within = pathsIn(call).some((path) => isWithin(path, directory.root));
    if (!within || harmlessCalls.has(call.name) || isPrivateMap(call)) return [];
    const read = readers[call.name];
    if (read === undefined) throw notUnderstood(call);
    return read(call, { ...directory, umask });
  });
}

/**
 * An io_uring would hide every call in it. libuv has two: one for files that a kernel thread polls (off by default),
 * and one without a kernel thread, which carries only waits.
 */
function isFileRing({ name, args, result }: SystemCall): boolean {
  return (
    name === 'io_uring_setup' && result >= 0 && /SQPOLL/.test(/flags=([^,}]*)/.exec(args[1] ?? '')?.[1] ?? '')
  );
}

function isWithin(path: string, root: string): boolean {
  return path === root || path.startsWith(`${root}/`);
}

function isAcknowledgement({ name, args }: SystemCall, { acknowledgement }: RecordedDirectory): boolean {
  return name === 'write' && /^1\b/.test(args[0] ?? '') && bytesOf(args[1]).includes(acknowledgement);
}

function isPrivateMap({ name, args }: SystemCall): boolean {
  if (name === 'mmap') return args[3]?.includes('MAP_PRIVATE') === true || !args[2]?.includes('PROT_WRITE');
  // libuv sets close-on-exec so.
  return name === 'ioctl' && /^(?:FIOCLEX|FIONCLEX|FIONBIO|TCGETS)$/.test(args[1] ?? '');
}

function notUnderstood(call: SystemCall): Error {
  return new Error(
    `a call changes the recorded directory, and is not understood: ${call.text.slice(0, 500)}`,
  );
}

type Reader = (call: SystemCall, directory: RecordedDirectory) => FileOperation[];

const readers: Readonly<Record<string, Reader>> = {
  openat: (call, directory) =>
    openOf(call, directory, pathAt(call, 0, directory), call.args[2], call.args[3]),
  open: (call, directory) => openOf(call, directory, pathOf(call, 0, directory), call.args[1], call.args[2]),
  creat: (call, directory) =>
    openOf(call, directory, pathOf(call, 0, directory), 'O_CREAT|O_WRONLY|O_TRUNC', call.args[1]),
  mkdir: (call, directory) => [
    { kind: 'mkdir', path: pathOf(call, 0, directory), mode: masked(call.args[1], directory) },
  ],
  mkdirat: (call, directory) => [
    { kind: 'mkdir', path: pathAt(call, 0, directory), mode: masked(call.args[2], directory) },
  ],
  symlink: (call, directory) => [
    { kind: 'symlink', path: pathOf(call, 1, directory), target: bytesOf(call.args[0]).toString() },
  ],
  symlinkat: (call, directory) => [
    { kind: 'symlink', path: pathAt(call, 1, directory), target: bytesOf(call.args[0]).toString() },
  ],
  link: (call, directory) => [
    { kind: 'link', from: pathOf(call, 0, directory), path: pathOf(call, 1, directory) },
  ],
  linkat: (call, directory) => [
    { kind: 'link', from: pathAt(call, 0, directory), path: pathAt(call, 2, directory) },
  ],
  rename: (call, directory) => [
    { kind: 'rename', from: pathOf(call, 0, directory), path: pathOf(call, 1, directory) },
  ],
  renameat: (call, directory) => renameOf(call, directory),
  renameat2: (call, directory) => {
    if (call.args[4] !== '0') throw notUnderstood(call);
    return renameOf(call, directory);
  },
  unlink: (call, directory) => [{ kind: 'unlink', path: pathOf(call, 0, directory) }],
  unlinkat: (call, directory) => [
    { kind: call.args[2]?.includes('AT_REMOVEDIR') ? 'rmdir' : 'unlink', path: pathAt(call, 0, directory) },
  ],
  rmdir: (call, directory) => [{ kind: 'rmdir', path: pathOf(call, 0, directory) }],
  chmod: (call, directory) => [{ kind: 'mode', path: pathOf(call, 0, directory), mode: octal(call.args[1]) }],
  fchmodat: (call, directory) => [
    { kind: 'mode', path: pathAt(call, 0, directory), mode: octal(call.args[2]) },
  ],
  fchmod: (call, directory) =>
    onFile(call, directory, (path) => ({ kind: 'mode', path, mode: octal(call.args[1]) })),
  write: (call, directory) =>
    onFile(call, directory, (path) => ({ kind: 'write', path, offset: 'next', bytes: written(call) })),
  pwrite64: (call, directory) =>
    onFile(call, directory, (path) => {
      return { kind: 'write', path, offset: Number(call.args[3]), bytes: written(call) };
    }),
  writev: (call, directory) =>
    onFile(call, directory, (path) => ({ kind: 'write', path, offset: 'next', bytes: gathered(call) })),
  pwritev: (call, directory) =>
    onFile(call, directory, (path) => {
      return { kind: 'write', path, offset: Number(call.args[3]), bytes: gathered(call) };
    }),
  ftruncate: (call, directory) =>
    onFile(call, directory, (path) => ({ kind: 'truncate', path, size: Number(call.args[1]) })),
  utimensat: timesOf,
  fsync: (call, directory) => onFile(call, directory, (path) => ({ kind: 'flush', path, what: 'all' })),
  fdatasync: (call, directory) => onFile(call, directory, (path) => ({ kind: 'flush', path, what: 'data' })),
  syncfs: () => [{ kind: 'flush-all' }],
};

function openOf(
  call: SystemCall,
  { umask }: RecordedDirectory,
  path: string,
  flags = '',
  mode: string | undefined,
): FileOperation[] {
  if (/O_TMPFILE|O_DSYNC|O_SYNC/.test(flags)) throw notUnderstood(call);
  if (!/O_WRONLY|O_RDWR/.test(flags)) return [];
  const open = { kind: 'open', path, at: flags.includes('O_APPEND') ? 'end' : 'begin' } as const;
  const truncate = flags.includes('O_TRUNC') ? [{ kind: 'truncate', path, size: 0 } as const] : [];
  const create = { kind: 'create', path, mode: octal(mode ?? '0') & ~umask } as const;
  return [...(flags.includes('O_CREAT') ? [create] : []), ...truncate, open];
}

function renameOf(call: SystemCall, directory: RecordedDirectory): FileOperation[] {
  return [{ kind: 'rename', from: pathAt(call, 0, directory), path: pathAt(call, 2, directory) }];
}

/** An operation on a descriptor; a file without a name ends with its process. */
function onFile(
  call: SystemCall,
  { root }: RecordedDirectory,
  operation: (path: string) => FileOperation,
): FileOperation[] {
  const file = descriptorOf(call.args[0]);
  if (file === undefined) throw notUnderstood(call);
  return file.deleted || !isWithin(file.path, root) ? [] : [operation(relative(file.path, root))];
}

function timesOf(call: SystemCall, directory: RecordedDirectory): FileOperation[] {
  const mtimeSeconds = Number(/tv_sec=(\d+)[^{]*$/.exec(call.args[2] ?? '')?.[1]);
  if (!Number.isSafeInteger(mtimeSeconds)) throw notUnderstood(call);
  if (call.args[1] === 'NULL')
    return onFile(call, directory, (path) => ({ kind: 'times', path, mtimeSeconds }));
  return [{ kind: 'times', path: pathAt(call, 0, directory), mtimeSeconds }];
}

function pathOf(call: SystemCall, index: number, { root }: RecordedDirectory): string {
  return relative(bytesOf(call.args[index]).toString(), root);
}

function pathAt(call: SystemCall, index: number, { root }: RecordedDirectory): string {
  const name = bytesOf(call.args[index + 1]).toString();
  const base = descriptorOf(call.args[index])?.path ?? '/';
  return relative(name.startsWith('/') ? name : join(base, name), root);
}

/** A move into or out of the directory cannot be expressed by names inside it. */
function relative(path: string, root: string): string {
  const clean = normalize(path);
  if (!isWithin(clean, root)) throw new Error(`${clean} is not in the recorded directory ${root}`);
  return clean === root ? '.' : clean.slice(root.length + 1);
}

function octal(text: string | undefined): number {
  return Number.parseInt(text ?? '', 8);
}

function masked(mode: string | undefined, { umask }: RecordedDirectory): number {
  return octal(mode) & ~umask;
}

/** A write can be shorter than requested. */
function written(call: SystemCall): Buffer {
  return bytesOf(call.args[1]).subarray(0, call.result);
}

function gathered(call: SystemCall): Buffer {
  const pieces = [...(call.args[1] ?? '').matchAll(/iov_base=("[^"]*")/g)].map(([, piece]) => bytesOf(piece));
  return Buffer.concat(pieces).subarray(0, call.result);
}

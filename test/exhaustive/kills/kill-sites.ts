// Finds in a trace of strace every call that changes the files of a host, with the count by which strace can strike exactly
// that call. An unclassified call fails the search, because kills at half of the calls prove nothing.
import { readingCalls } from '../replay/recorded-operations.js';

export interface KillSite {
  readonly call: string;
  /** The count for strace's `when=`: among the calls of this name in this thread, from 1. */
  readonly nth: number;
  /** Position among the sites of the cycle. */
  readonly index: number;
  /** The call and its paths below the root, without random parts: equal in every run. */
  readonly what: string;
  /** The position among calls with equal text, such as those that write the ledger, from 1. */
  readonly ordinal: number;
  /** `main`: the thread that runs the cycle in order. `child`: a program that it runs, which is `sync`. */
  readonly thread: 'main' | 'child';
}

/** Calls that may change a file, its name, its attributes, or its durability. */
const changingCalls: ReadonlySet<string> = new Set([
  ...['write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'ftruncate', 'truncate', 'fallocate'],
  ...['copy_file_range', 'sendfile', 'splice', 'creat', 'mknod', 'mknodat'],
  ...['fsync', 'fdatasync', 'syncfs', 'sync', 'sync_file_range'],
  ...['rename', 'renameat', 'renameat2', 'symlink', 'symlinkat', 'link', 'linkat', 'unlink', 'unlinkat'],
  ...['mkdir', 'mkdirat', 'rmdir', 'chmod', 'fchmod', 'fchmodat', 'fchmodat2'],
  ...['chown', 'fchown', 'lchown', 'fchownat', 'utime', 'utimes', 'futimesat', 'utimensat'],
  ...['setxattr', 'fsetxattr', 'lsetxattr', 'removexattr', 'bind'],
]);

/** Calls without an effect on files: descriptors, and locks, which end with the process. */
const harmlessCalls: ReadonlySet<string> = new Set([
  ...['close', 'close_range', 'dup', 'dup2', 'dup3', 'fcntl', 'flock', 'chdir', 'fchdir', 'getcwd', 'ioctl'],
  ...['epoll_ctl', 'execve', 'connect', 'accept4', 'listen', 'getsockname', 'getsockopt', 'setsockopt'],
  ...['mmap', 'fadvise64', 'inotify_add_watch', 'inotify_rm_watch', 'sendmsg', 'recvmsg', 'shutdown'],
  ...readingCalls,
]);

/** Calls that strace does not need to print. */
export const unwatchedCalls: readonly string[] = [...readingCalls, 'close', 'mmap', 'ioctl', 'epoll_ctl'];

interface Line {
  readonly process: string;
  readonly call: string;
  readonly args: string;
}

/** @param trace of `strace -y -o`, with or without `-f`, in the order in which the calls began */
export function linesOf(trace: string): Line[] {
  return trace.split('\n').flatMap((line) => {
    const [, process = '', call, args] = /^(?:(\d+) +)?(\w+)\((.*)$/.exec(line) ?? [];
    return call === undefined || args === undefined ? [] : [{ process, call, args }];
  });
}

interface Watched {
  readonly root: string;
  /** `reading`: also the opening of files to be read, which can fail without a change. */
  readonly also?: 'reading';
}

/** @returns the sites of every process in the trace; `main` is the main thread of the first */
export function sitesOf(trace: string, { root, also }: Watched): KillSite[] {
  const lines = linesOf(trace);
  const main = lines[0]?.process;
  const counts = new Map<string, number>();
  const sites: KillSite[] = [];
  for (const { process, call, args } of lines) {
    const key = `${process} ${call}`;
    const nth = (counts.get(key) ?? 0) + 1;
    counts.set(key, nth);
    const what = describeCall({ call, args }, root);
    if (what === undefined || !isWanted({ call, args }, also)) continue;
    const ordinal = sites.filter((one) => one.what === what).length + 1;
    const thread = process === main ? 'main' : 'child';
    sites.push({ call, nth, what, index: sites.length, ordinal, thread });
  }
  return sites;
}

function isWanted({ call, args }: Pick<Line, 'call' | 'args'>, also: Watched['also']): boolean {
  if (call === 'open' || call === 'openat') return also === 'reading' || /O_CREAT|O_TRUNC/.test(args);
  if (!changingCalls.has(call) && !harmlessCalls.has(call))
    throw new Error(`classify whether this call changes a file: ${call}(${args.slice(0, 200)}`);
  return changingCalls.has(call);
}

/** @returns the call and its paths; undefined for a call outside the root */
export function describeCall({ call, args }: Pick<Line, 'call' | 'args'>, root: string): string | undefined {
  // The result follows the bracket; a call that was struck has none.
  const [given = ''] = args.split(/\) += /);
  const paths = [...given.matchAll(/["<](\/[^">]*)[">]/g)].map(([, path = '']) => path);
  const below = paths.filter((path) => path === root || path.startsWith(`${root}/`));
  if (below.length === 0) return undefined;
  return `${call} ${below.map((path) => plain(path.slice(root.length + 1))).join(', ')}`;
}

function plain(path: string): string {
  return path.replace(/\.writ-tmp-[0-9a-f]+/, '.writ-tmp').replace(/\bc-[0-9a-f]{8}\b/, 'CYCLE');
}

/** Selects the first and the last site of each call. */
export function firstAndLast(sites: readonly KillSite[]): KillSite[] {
  const calls = [...new Set(sites.map(({ call }) => call))];
  return calls.flatMap((call) => {
    const group = sites.filter((site) => site.call === call);
    return [...new Set([group[0], group.at(-1)])].filter((site) => site !== undefined);
  });
}

// Finds in a record of strace every call that changes the files of a host, with the number by which strace can be told
// to strike at just that call. A call that is neither known to change nothing nor to change something fails the search:
// kills at half of the calls prove nothing.
import { readingCalls } from '../replay/recorded-operations.js';

export interface KillSite {
  readonly call: string;
  /** As strace counts for `when=`: among the calls of this name in this thread, from 1. */
  readonly nth: number;
  /** Position among the sites of the cycle. */
  readonly index: number;
  /** The call and its paths below the root, without what is random in them: the same in every run. */
  readonly what: string;
  /** Several calls read alike, as those that write the ledger: which of them, from 1. */
  readonly ordinal: number;
  /** `main`: the thread that does everything in order. `child`: a program that it runs, which is `sync`. */
  readonly thread: 'main' | 'child';
}

/** What may change a file, its name, its attributes, or what of it is durable. */
const changingCalls: ReadonlySet<string> = new Set([
  ...['write', 'pwrite64', 'writev', 'pwritev', 'pwritev2', 'ftruncate', 'truncate', 'fallocate'],
  ...['copy_file_range', 'sendfile', 'splice', 'creat', 'mknod', 'mknodat'],
  ...['fsync', 'fdatasync', 'syncfs', 'sync', 'sync_file_range'],
  ...['rename', 'renameat', 'renameat2', 'symlink', 'symlinkat', 'link', 'linkat', 'unlink', 'unlinkat'],
  ...['mkdir', 'mkdirat', 'rmdir', 'chmod', 'fchmod', 'fchmodat', 'fchmodat2'],
  ...['chown', 'fchown', 'lchown', 'fchownat', 'utime', 'utimes', 'futimesat', 'utimensat'],
  ...['setxattr', 'fsetxattr', 'lsetxattr', 'removexattr', 'bind'],
]);

/** Of no consequence for a file: descriptors come and go, a lock is nobody's after a kill. */
const harmlessCalls: ReadonlySet<string> = new Set([
  ...['close', 'close_range', 'dup', 'dup2', 'dup3', 'fcntl', 'flock', 'chdir', 'fchdir', 'getcwd', 'ioctl'],
  ...['epoll_ctl', 'execve', 'connect', 'accept4', 'listen', 'getsockname', 'getsockopt', 'setsockopt'],
  ...['mmap', 'fadvise64', 'inotify_add_watch', 'inotify_rm_watch', 'sendmsg', 'recvmsg', 'shutdown'],
  ...readingCalls,
]);

/** What strace need not print. */
export const unwatchedCalls: readonly string[] = [...readingCalls, 'close', 'mmap', 'ioctl', 'epoll_ctl'];

interface Line {
  readonly process: string;
  readonly call: string;
  readonly args: string;
}

/** @param trace as `strace -y -o` writes it, with or without `-f`, in the order in which the calls began */
export function linesOf(trace: string): Line[] {
  return trace.split('\n').flatMap((line) => {
    const [, process = '', call, args] = /^(?:(\d+) +)?(\w+)\((.*)$/.exec(line) ?? [];
    return call === undefined || args === undefined ? [] : [{ process, call, args }];
  });
}

interface Watched {
  readonly root: string;
  /** Opening a file to read it changes nothing, but it can fail. */
  readonly also?: 'reading';
}

/** @returns the sites of every process in the trace; the first one's main thread is `main` */
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
    throw new Error(`nobody has said whether this call changes a file: ${call}(${args.slice(0, 200)}`);
  return changingCalls.has(call);
}

/** @returns the call and its paths, or undefined when it is about nothing below the root */
export function describeCall({ call, args }: Pick<Line, 'call' | 'args'>, root: string): string | undefined {
  // Behind the bracket stands what the call returned, which a call that was struck has not.
  const [given = ''] = args.split(/\) += /);
  const paths = [...given.matchAll(/["<](\/[^">]*)[">]/g)].map(([, path = '']) => path);
  const below = paths.filter((path) => path === root || path.startsWith(`${root}/`));
  if (below.length === 0) return undefined;
  return `${call} ${below.map((path) => plain(path.slice(root.length + 1))).join(', ')}`;
}

function plain(path: string): string {
  return path.replace(/\.writ-tmp-[0-9a-f]+/, '.writ-tmp').replace(/\bc-[0-9a-f]{8}\b/, 'CYCLE');
}

/** The first and the last site of each call. */
export function firstAndLast(sites: readonly KillSite[]): KillSite[] {
  const calls = [...new Set(sites.map(({ call }) => call))];
  return calls.flatMap((call) => {
    const group = sites.filter((site) => site.call === call);
    return [...new Set([group[0], group.at(-1)])].filter((site) => site !== undefined);
  });
}

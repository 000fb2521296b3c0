// The door to bubblewrap: what a command may see and be, as the arguments of a program, and how its run ended. A
// root agent builds the mounts as root, gives root up for good, and only then starts the command: the mounts may
// hold trees that only root can reach. Knows no policy: its caller says what lies where.
import { constants } from 'node:os';
import { given } from '../../core/given.js';
import type { UserIds } from '../users/user-id.js';
import { type CommandOptions, type CommandResult, runCommand } from './run-command.js';

/** Absolute paths. */
export interface BoxPrograms {
  readonly bwrap: string;
  readonly prlimit: string;
  readonly setpriv: string;
}

/** One step of building the file system, in order; a later one covers an earlier one. Paths are real. */
export type BoxMount =
  | { readonly kind: 'read-only' | 'writable'; readonly from: string; readonly to: string }
  /** An empty directory of its own, until `sealed`. */
  | { readonly kind: 'empty' | 'sealed' | 'directory'; readonly path: string }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

export type BoxUser = UserIds;

export interface Box {
  /** Who the command is when we are root; left out: as ourselves, who are not root. */
  readonly user?: UserIds;
  /** A namespace of its own, in which only its own user is known. */
  readonly userNamespace: 'yes' | 'no';
  readonly network: 'yes' | 'no';
  /** On top of the whole file system, read-only. */
  readonly mounts: readonly BoxMount[];
  /** Where it starts; must be in the mounts. */
  readonly directory: string;
  /** Of each process: writable private memory. Left out: no bound here. */
  readonly maxDataBytes?: number;
  /** Left out: no bound; it counts all processes of the user in its user namespace. */
  readonly maxProcesses?: number;
  /** A seccomp program, as bytes of classic BPF; left out: every system call is open. */
  readonly systemCalls?: Uint8Array;
}

const statusDescriptor = 3;
const filterDescriptor = 4;

/**
 * @returns the arguments that run a command in the box; descriptor 3 gets JSON lines, `exit-code` among them only
 *   when the command itself was started; descriptor 4 gives the seccomp program, if there is one
 */
export function boxArgv(programs: BoxPrograms, box: Box, argv: readonly string[]): [string, ...string[]] {
  // To the bubblewrap that starts the command: what comes before it mounts, and makes namespaces.
  const filter = box.systemCalls === undefined ? [] : ['--seccomp', String(filterDescriptor)];
  const status = [...filter, '--json-status-fd', String(statusDescriptor)];
  const limited = [...limitArgv(programs, box), ...argv];
  const outside = [...namespaces(box), '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'];
  // Also /dev: without its own mounts it is the one directory in which a command could leave something for another.
  const mounts = [...box.mounts.flatMap(mountArgv), '--remount-ro', '/dev', '--chdir', box.directory];
  const built = [...outside, ...mounts];
  if (box.user === undefined)
    return [programs.bwrap, '--unshare-user', ...built, ...status, '--', ...limited];
  const open = box.network === 'no' ? openAddresses : noProgram;
  const drop = [...open.program, ...dropArgv(programs, box.user)];
  const asRoot = [...built, ...open.mounts];
  if (box.userNamespace === 'no') return [programs.bwrap, ...asRoot, ...status, '--', ...drop, ...limited];
  // Its own namespace comes last: root must not be mapped into it, and the mounts above need root.
  const inside = ['--unshare-user', '--die-with-parent', '--dev-bind', '/', '/', '--chdir', box.directory];
  return [programs.bwrap, ...asRoot, '--', ...drop, programs.bwrap, ...inside, ...status, '--', ...limited];
}

/**
 * Checkers as `nginx -t` bind what the configuration says they will. In a network of its own nobody is hurt when
 * any port and any address can be had; only root can say so. Fixed text: nothing of a configuration gets in here.
 */
const openAddresses = {
  mounts: ['--bind', '/proc/sys/net', '/proc/sys/net'],
  program: [
    '/bin/sh',
    '-c',
    '{ n=/proc/sys/net; echo 0 >$n/ipv4/ip_unprivileged_port_start; echo 1 >$n/ipv4/ip_nonlocal_bind; ' +
      'echo 1 >$n/ipv6/ip_nonlocal_bind; } 2>/dev/null; exec "$@"',
    'sh',
  ],
} as const;
const noProgram = { mounts: [], program: [] } as const;

/** With --die-with-parent the init of the PID namespace dies with us, and all that it holds with it. */
function namespaces({ network }: Box): string[] {
  const net = network === 'yes' ? [] : ['--unshare-net'];
  return ['--die-with-parent', '--unshare-pid', '--unshare-ipc', '--unshare-uts', ...net];
}

const mountFlags = {
  'read-only': '--ro-bind',
  writable: '--bind',
  empty: '--tmpfs',
  sealed: '--remount-ro',
  directory: '--dir',
  link: '--symlink',
} as const;

function mountArgv(mount: BoxMount): string[] {
  const flag = mountFlags[mount.kind];
  if ('from' in mount) return [flag, mount.from, mount.to];
  return 'target' in mount ? [flag, mount.target, mount.path] : [flag, mount.path];
}

/** No capability, no way to a new one, and no group but those that are named. */
function dropArgv({ setpriv }: BoxPrograms, { uid, gid, groups }: UserIds): string[] {
  const own = groups.length === 0 ? '--clear-groups' : `--groups=${groups.join(',')}`;
  const none = ['--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all', '--no-new-privs'];
  return [setpriv, `--reuid=${uid}`, `--regid=${gid}`, own, ...none, '--'];
}

/** Inside of the user namespace, where processes are counted again. A core file would leave policy behind. */
function limitArgv({ prlimit }: BoxPrograms, { maxDataBytes, maxProcesses }: Box): string[] {
  const data = maxDataBytes === undefined ? [] : [`--data=${maxDataBytes}`];
  const processes = maxProcesses === undefined ? [] : [`--nproc=${maxProcesses}`];
  return [prlimit, '--core=0', ...data, ...processes, '--'];
}

/** How it ended, or that it never was the command's turn. */
export type BoxResult = CommandResult | { readonly kind: 'not-boxed'; readonly reason: string };

export interface BoxedCommand
  extends Omit<CommandOptions, 'argv' | 'cwd' | 'maxStatusBytes' | 'extraInput' | 'extraDescriptors'> {
  readonly argv: readonly string[];
  readonly box: Box;
  readonly programs: BoxPrograms;
  /** In front of everything, as what enters a control group. */
  readonly enter?: readonly string[];
}

const maxStatusBytes = 4096;

/** Never rejects. A deadline, an abort and our own death end every process of it. */
export async function runBoxed(command: BoxedCommand): Promise<BoxResult> {
  const { argv, box, programs, enter = [], ...options } = command;
  const [program, ...rest] = boxArgv(programs, box, argv);
  const [first = program, ...others] = [...enter, program, ...rest];
  const result = await runCommand({
    ...options,
    argv: [first, ...others],
    cwd: '/',
    maxStatusBytes,
    ...given({ extraInput: box.systemCalls }),
  });
  if (result.kind === 'not-started') return { kind: 'not-boxed', reason: result.reason };
  if (result.kind !== 'exited') return result;
  const said = commandExit(result.status ?? '');
  const { kind: _, exitCode: outside, ...output } = result;
  // `kill -9 -1` reaches the bubblewrap that would have said it, and says nothing against the sandbox.
  const exitCode =
    said ?? (result.status?.includes('"child-pid"') && signalOf(outside) ? outside : undefined);
  if (exitCode === undefined) return { kind: 'not-boxed', reason: firstLine(result.stderr) };
  const signal = signalOf(exitCode);
  return signal === undefined ? { ...result, exitCode } : { ...output, kind: 'killed', signal };
}

/** bubblewrap writes it when the command was started and has ended, and not when setting up failed. */
function commandExit(status: string): number | undefined {
  const match = /^\{ "exit-code": (\d{1,3}) \}$/m.exec(status);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** As a shell, bubblewrap says 128 and the signal. */
function signalOf(exitCode: number): NodeJS.Signals | undefined {
  const entry = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return entry?.[0] as NodeJS.Signals | undefined;
}

function firstLine(text: string): string {
  const line = text.trim().split('\n')[0] ?? '';
  return line === '' ? 'bubblewrap ended without a word' : line.slice(0, 500);
}

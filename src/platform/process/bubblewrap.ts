// Runs a command in bubblewrap: builds its arguments and interprets its result. A root agent creates the mounts as root, drops
// root permanently, and only then starts the command, because the mounts may contain trees that only root can reach. The caller
// chooses the mounts.
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
  /** `empty`: an empty writable directory; `sealed` makes it read-only. */
  | { readonly kind: 'empty' | 'sealed' | 'directory'; readonly path: string }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

export type BoxUser = UserIds;

export interface Box {
  /** User of the command if this process is root; left out: the user of this process, which is not root then. */
  readonly user?: UserIds;
  /** Whether the command gets its own user namespace, in which only its own user is mapped. */
  readonly userNamespace: 'yes' | 'no';
  readonly network: 'yes' | 'no';
  /** Mounted over the read-only root file system. */
  readonly mounts: readonly BoxMount[];
  /** Working directory; must be in the mounts. */
  readonly directory: string;
  /** Limit of writable private memory of each process; left out: unlimited here. */
  readonly maxDataBytes?: number;
  /** Limit of all processes of the user in its user namespace; left out: unlimited. */
  readonly maxProcesses?: number;
  /** A seccomp program in classic BPF; left out: every system call is allowed. */
  readonly systemCalls?: Uint8Array;
}

const statusDescriptor = 3;
const filterDescriptor = 4;

/**
 * @returns the arguments that run a command in the box. Descriptor 3 receives JSON lines, with `exit-code` only if the command
 *   itself was started. Descriptor 4 provides the seccomp program, if there is one
 */
export function boxArgv(programs: BoxPrograms, box: Box, argv: readonly string[]): [string, ...string[]] {
  // Passed to the inner bubblewrap, which starts the command; the programs before it mount and create namespaces.
  const filter = box.systemCalls === undefined ? [] : ['--seccomp', String(filterDescriptor)];
  const status = [...filter, '--json-status-fd', String(statusDescriptor)];
  const limited = [...limitArgv(programs, box), ...argv];
  const outside = [...namespaces(box), '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'];
  // /dev becomes read-only too: otherwise a command could leave a file there for another command.
  const mounts = [...box.mounts.flatMap(mountArgv), '--remount-ro', '/dev', '--chdir', box.directory];
  const built = [...outside, ...mounts];
  if (box.user === undefined)
    return [programs.bwrap, '--unshare-user', ...built, ...status, '--', ...limited];
  const open = box.network === 'no' ? openAddresses : noProgram;
  const drop = [...open.program, ...dropArgv(programs, box.user)];
  const asRoot = [...built, ...open.mounts];
  if (box.userNamespace === 'no') return [programs.bwrap, ...asRoot, ...status, '--', ...drop, ...limited];
  // The user namespace is created last: root must not be mapped into it, and the mounts above need root.
  const inside = ['--unshare-user', '--die-with-parent', '--dev-bind', '/', '/', '--chdir', box.directory];
  return [programs.bwrap, ...asRoot, '--', ...drop, programs.bwrap, ...inside, ...status, '--', ...limited];
}

/**
 * Allows the command to bind every port and address, because checkers such as `nginx -t` bind the configured ones. This is
 * harmless in a network namespace of its own, and only root can allow it. The text is fixed and contains no configuration.
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

/** With --die-with-parent the init of the PID namespace ends with this process, and all processes of the namespace with it. */
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

/** Drops all capabilities, prevents new ones, and keeps only the given groups. */
function dropArgv({ setpriv }: BoxPrograms, { uid, gid, groups }: UserIds): string[] {
  const own = groups.length === 0 ? '--clear-groups' : `--groups=${groups.join(',')}`;
  const none = ['--inh-caps=-all', '--ambient-caps=-all', '--bounding-set=-all', '--no-new-privs'];
  return [setpriv, `--reuid=${uid}`, `--regid=${gid}`, own, ...none, '--'];
}

/** Limits within the user namespace, which counts processes separately. Core files are disabled, as they would contain policy. */
function limitArgv({ prlimit }: BoxPrograms, { maxDataBytes, maxProcesses }: Box): string[] {
  const data = maxDataBytes === undefined ? [] : [`--data=${maxDataBytes}`];
  const processes = maxProcesses === undefined ? [] : [`--nproc=${maxProcesses}`];
  return [prlimit, '--core=0', ...data, ...processes, '--'];
}

/** The result of the command; `not-boxed` if the sandbox failed before the command started. */
export type BoxResult = CommandResult | { readonly kind: 'not-boxed'; readonly reason: string };

export interface BoxedCommand
  extends Omit<CommandOptions, 'argv' | 'cwd' | 'maxStatusBytes' | 'extraInput' | 'extraDescriptors'> {
  readonly argv: readonly string[];
  readonly box: Box;
  readonly programs: BoxPrograms;
  /** Arguments before all others, such as those that enter a control group. */
  readonly enter?: readonly string[];
}

const maxStatusBytes = 4096;

/** Runs a command in a sandbox. Never rejects. A timeout, an abort or the end of this process ends all its processes. */
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
  const commandCode = commandExit(result.status ?? '');
  const { kind: _, exitCode: outside, ...output } = result;
  // A command that runs `kill -9 -1` also kills the inner bubblewrap, which then reports no exit code. The sandbox did work.
  const exitCode =
    commandCode ?? (result.status?.includes('"child-pid"') && signalOf(outside) ? outside : undefined);
  if (exitCode === undefined) return { kind: 'not-boxed', reason: firstLine(result.stderr) };
  const signal = signalOf(exitCode);
  return signal === undefined ? { ...result, exitCode } : { ...output, kind: 'killed', signal };
}

/** @returns the exit code, which bubblewrap writes only if the command was started; undefined if the setup failed */
function commandExit(status: string): number | undefined {
  const match = /^\{ "exit-code": (\d{1,3}) \}$/m.exec(status);
  return match?.[1] === undefined ? undefined : Number(match[1]);
}

/** Converts an exit code: bubblewrap returns 128 plus the signal, as a shell does. */
function signalOf(exitCode: number): NodeJS.Signals | undefined {
  const entry = Object.entries(constants.signals).find(([, number]) => number === exitCode - 128);
  return entry?.[0] as NodeJS.Signals | undefined;
}

function firstLine(text: string): string {
  const line = text.trim().split('\n')[0] ?? '';
  return line === '' ? 'bubblewrap ended without a word' : line.slice(0, 500);
}

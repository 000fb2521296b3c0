// Builds the sandbox of one command from its configuration and the capabilities of this host. Secret files are hidden, and the
// policy that the command examines is mounted at the path of the active policy. Does not judge the command.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { HookConfig } from '../../core/config/config.js';
import { defaultHookSandbox, type HookSandboxSettings } from '../../core/config/hook-sandbox.js';
import { WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import {
  type Box,
  type BoxedCommand,
  type BoxMount,
  type BoxResult,
  type BoxUser,
  runBoxed,
} from '../../platform/process/bubblewrap.js';
import { resolveUser } from '../../platform/users/user-id.js';
import type { SandboxCapabilities } from '../state/host.js';
import type { HostPaths } from '../state/paths.js';
import { type PolicyView, viewMounts } from './policy-view.js';

/** Directories with sockets, secrets and files of other users. They are empty inside the sandbox. */
const hiddenHostDirectories = ['/run', '/tmp', '/home', '/root'];

/** Adds the directory of the agent's sockets: a command with the user of the agent could control it, or refuse as a worker. */
function hiddenDirectories({ run }: ConfineOptions['paths']): readonly string[] {
  return hiddenHostDirectories.some((place) => isBelow(run, place))
    ? hiddenHostDirectories
    : [...hiddenHostDirectories, run];
}

function isBelow(path: string, directory: string): boolean {
  return `${path}/`.startsWith(`${directory}/`);
}

export interface ConfineOptions {
  readonly hook: HookConfig;
  readonly paths: Pick<HostPaths, 'state' | 'policy' | 'run'>;
  readonly view: PolicyView;
  /** Ids of the groups that may read trees with restricted permissions. */
  readonly readers: readonly number[];
  /** Files with credentials and sockets of the agent. Commands of an agent that is not root have its user, and could use them. */
  readonly secrets?: readonly string[];
}

/** The sandbox of a command, before its arguments are known. */
export interface Confinement {
  /** The user of the command; undefined: the user of the agent. */
  readonly user: BoxUser | undefined;
  /** @param scratch the private directory of the command, already owned by `user` */
  run(
    scratch: string,
    command: Pick<BoxedCommand, 'argv' | 'env' | 'timeoutMs' | 'maxOutputBytes' | 'signal'>,
  ): Promise<BoxResult>;
  /** @returns the first path in this text that is hidden from the command; undefined for none */
  hiddenIn(text: string): string | undefined;
}

/**
 * Chooses the user of a command, and prepares its sandbox. Runs nothing before `run`.
 * @returns the confinement. `user` is undefined if the command runs with the user of an agent that is not root; an agent of root
 *   uses the configured user, or `nobody`
 * @throws WritError SANDBOX_BROKEN if the configured user is root or unknown, or differs from that of an agent that is not root.
 *   `run` rejects with the same code if an agent that is not root must not use a user namespace
 */
export function confine(capabilities: SandboxCapabilities, options: ConfineOptions): Confinement {
  const { hook, readers } = options;
  const asked = hook.box ?? defaultHookSandbox;
  const user = userOf(capabilities, asked, readers);
  return {
    user,
    run: (scratch, command) => {
      const directory = fs.realpathSync(scratch);
      const place = { mounts: mountsOf(options, asked, directory), directory };
      return runInControlGroup(capabilities, asked, {
        ...command,
        box: boxOf(capabilities, asked, place, readers),
      });
    },
    hiddenIn: (text) => hiddenPath(text, options, asked),
  };
}

/** Runs the command in a control group of its own if the host has control groups. */
async function runInControlGroup(
  { programs, groups }: SandboxCapabilities,
  { maxMemoryBytes, maxProcesses }: HookSandboxSettings,
  command: Omit<BoxedCommand, 'programs'>,
): Promise<BoxResult> {
  const group = groups?.open({ maxMemoryBytes, maxProcesses });
  if (group === undefined) return runBoxed({ ...command, programs });
  const { box } = command;
  const { maxDataBytes: _, ...grouped } = box;
  const result = await runBoxed({ ...command, box: grouped, programs, enter: group.enter });
  const { outOfMemory } = await group.close();
  // The kernel killed a process of the command: its exit code is then not a verdict.
  if (outOfMemory === 'no' || result.kind !== 'exited') return result;
  const { exitCode: _code, ...output } = result;
  return { ...output, kind: 'killed', signal: 'SIGKILL' };
}

/**
 * @param asked the sandbox settings of the command
 * @param readers ids of groups that the command needs to read its files
 * @returns the sandbox as far as this host can provide it
 * @throws WritError SANDBOX_BROKEN where the settings need a right that this agent does not have, CONFIG_INVALID for
 * an unknown user
 */
export function boxOf(
  capabilities: SandboxCapabilities,
  asked: HookSandboxSettings,
  place: Pick<Box, 'mounts' | 'directory'>,
  readers: readonly number[] = [],
): Box {
  const user = userOf(capabilities, asked, readers);
  if (user === undefined && asked.userNamespace === 'no')
    throw sandboxBroken('only an agent of root can do without a user namespace');
  const userNamespace = capabilities.userNamespace === 'yes' ? asked.userNamespace : 'no';
  // Without a user namespace the kernel counts all processes of the user. Set the limit only for a user that is configured for
  // this command alone.
  const isCounted = userNamespace === 'yes' || user === undefined || asked.user !== undefined;
  const maxProcesses = Math.min(asked.maxProcesses, capabilities.limits.maxProcesses);
  return {
    ...place,
    ...(user === undefined ? {} : { user }),
    userNamespace,
    network: asked.network,
    maxDataBytes: Math.min(asked.maxMemoryBytes, capabilities.limits.maxDataBytes),
    ...(isCounted ? { maxProcesses } : {}),
    ...given({ systemCalls: capabilities.systemCalls?.[asked.canNestNamespaces ? 'nested' : 'confined'] }),
  };
}

const defaultUser = 'nobody';

/** @returns undefined for the user of the agent, the only one possible if the agent is not root. @throws WritError for root */
function userOf(
  { isRoot }: SandboxCapabilities,
  { user }: HookSandboxSettings,
  readers: readonly number[],
): BoxUser | undefined {
  if (!isRoot && user === undefined) return undefined;
  const ids = requireUser(user ?? defaultUser);
  if (ids.uid === 0) throw sandboxBroken(`${user} is root`);
  if (isRoot) return { ...ids, groups: [...new Set([...ids.groups, ...readers])] };
  if (ids.uid === process.getuid?.()) return undefined;
  throw sandboxBroken(`only an agent of root can run it as ${user}`);
}

function requireUser(user: string | number): BoxUser {
  try {
    return resolveUser(user);
  } catch (error) {
    throw sandboxBroken(error instanceof Error ? error.message : String(error));
  }
}

function sandboxBroken(reason: string): WritError {
  return new WritError('SANDBOX_BROKEN', reason, { facts: { reason } });
}

/**
 * Orders the mounts: hidden directories, configured binds, then the state directory and policy. So no bind can show the state
 * directory or replace the policy. The hidden directories become read-only last, after every mount point is created.
 */
function mountsOf(
  { paths, view, secrets = [] }: ConfineOptions,
  asked: HookSandboxSettings,
  scratch: string,
): BoxMount[] {
  const state = fs.realpathSync(paths.state);
  const places = hiddenDirectories(paths);
  const hidden = places.flatMap((path) => (fs.existsSync(path) ? [fs.realpathSync(path)] : []));
  const empty = (path: string): BoxMount => ({ kind: 'empty', path });
  const sealed = (path: string): BoxMount => ({ kind: 'sealed', path });
  return [
    ...hidden.map(empty),
    ...asked.binds.flatMap((path) => bind('read-only', path)),
    ...asked.writable.flatMap((path) => bind('writable', path)),
    ...secrets.flatMap((path) => hideFile(path, places, asked)),
    empty(state),
    ...viewMounts(fs.realpathSync(paths.policy), view),
    ...bind('writable', scratch),
    sealed(state),
    ...hidden.map(sealed),
  ];
}

/**
 * Creates the parent directories first, because bubblewrap would give them the mode of the mounted path, and a private mode would
 * keep the command out. A missing path is passed on: bubblewrap reports it.
 */
function bind(kind: 'read-only' | 'writable', path: string): BoxMount[] {
  if (!fs.existsSync(path)) return [{ kind, from: path, to: path }];
  const real = fs.realpathSync(path);
  return [
    { kind: 'directory', path: dirname(real) },
    { kind, from: real, to: real },
  ];
}

/** Mounts /dev/null over a visible secret, read-only. A command that needs the file names it in its binds. */
function hideFile(
  path: string,
  places: readonly string[],
  { binds, writable }: HookSandboxSettings,
): BoxMount[] {
  if (binds.includes(path) || !fs.existsSync(path)) return [];
  const real = fs.realpathSync(path);
  const isHidden = places.some((place) => isBelow(real, place));
  const isBound = [...binds, ...writable].some((one) => isBelow(real, one));
  return isHidden && !isBound ? [] : [{ kind: 'read-only', from: '/dev/null', to: real }];
}

function hiddenPath(
  text: string,
  { paths }: ConfineOptions,
  { binds, writable }: HookSandboxSettings,
): string | undefined {
  const shown = [...binds, ...writable, paths.policy, join(paths.state, 'staging')];
  const named = text.match(/\/[\w.@/-]+/g) ?? [];
  return named.find(
    (path) =>
      [...hiddenDirectories(paths), paths.state].some((place) => path !== place && isBelow(path, place)) &&
      !shown.some((place) => isBelow(path, place)),
  );
}

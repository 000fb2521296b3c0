// One command in the sandbox: what its keys ask for, and what this host can give, become a box; what it must not
// see is covered, and what it is shown of policy is at the live path. Decides nothing about its verdict.
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
import { lookUpUser } from '../../platform/users/user-id.js';
import type { SandboxCapabilities } from '../state/host.js';
import type { HostPaths } from '../state/paths.js';
import { type PolicyView, viewMounts } from './policy-view.js';

/** Where sockets, other people's files and secrets lie: a command finds empty directories there. */
const hostPlaces = ['/run', '/tmp', '/home', '/root'];

/** And our own sockets, wherever they are: one user may command the agent, and veto as a worker. */
function hiddenPlaces({ run }: ConfineOptions['paths']): readonly string[] {
  return hostPlaces.some((place) => isBelow(run, place)) ? hostPlaces : [...hostPlaces, run];
}

function isBelow(path: string, directory: string): boolean {
  return `${path}/`.startsWith(`${directory}/`);
}

export interface ConfineOptions {
  readonly hook: HookConfig;
  readonly paths: Pick<HostPaths, 'state' | 'policy' | 'run'>;
  readonly view: PolicyView;
  /** Groups that own trees which not everybody may read. */
  readonly readers: readonly number[];
  /**
   * Files with what the agent shows to others, and sockets at which it answers; an agent that is not root shares its
   * user with every command.
   */
  readonly secrets?: readonly string[];
}

/** A command's place, before its arguments are known. */
export interface Confinement {
  /** Who it will be; undefined: as ourselves. */
  readonly user: BoxUser | undefined;
  /** @param scratch its own directory, which belongs to the user already */
  run(
    scratch: string,
    command: Pick<BoxedCommand, 'argv' | 'env' | 'timeoutMs' | 'maxOutputBytes' | 'signal'>,
  ): Promise<BoxResult>;
  /** @returns a directory, which this text names a path below of, that is hidden from the command */
  hiddenIn(text: string): string | undefined;
}

/** @throws WritError SANDBOX_BROKEN when it asks for what this host cannot give */
export function confine(means: SandboxCapabilities, options: ConfineOptions): Confinement {
  const { hook, readers } = options;
  const asked = hook.box ?? defaultHookSandbox;
  const user = userOf(means, asked, readers);
  return {
    user,
    run: (scratch, command) => {
      const directory = fs.realpathSync(scratch);
      const place = { mounts: mountsOf(options, asked, directory), directory };
      return runBounded(means, asked, { ...command, box: boxOf(means, asked, place, readers) });
    },
    hiddenIn: (text) => hiddenPath(text, options, asked),
  };
}

/** In a control group of its own where there are any. */
async function runBounded(
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
  // Whatever it made of the death of a child: nothing that it said after it is a verdict.
  if (outOfMemory === 'no' || result.kind !== 'exited') return result;
  const { exitCode: _code, ...output } = result;
  return { ...output, kind: 'killed', signal: 'SIGKILL' };
}

/** @throws WritError SANDBOX_BROKEN */
export function boxOf(
  means: SandboxCapabilities,
  asked: HookSandboxSettings,
  place: Pick<Box, 'mounts' | 'directory'>,
  readers: readonly number[] = [],
): Box {
  const user = userOf(means, asked, readers);
  if (user === undefined && asked.userNamespace === 'no')
    throw broken('only an agent of root can do without a user namespace');
  const userNamespace = means.userNamespace === 'yes' ? asked.userNamespace : 'no';
  // Without a namespace of its own a bound would count what all others of that user run: only his own will do.
  const isCounted = userNamespace === 'yes' || user === undefined || asked.user !== undefined;
  const maxProcesses = Math.min(asked.maxProcesses, means.limits.maxProcesses);
  return {
    ...place,
    ...(user === undefined ? {} : { user }),
    userNamespace,
    network: asked.network,
    maxDataBytes: Math.min(asked.maxMemoryBytes, means.limits.maxDataBytes),
    ...(isCounted ? { maxProcesses } : {}),
    ...given({ systemCalls: means.systemCalls?.[asked.canNestNamespaces ? 'nested' : 'confined'] }),
  };
}

const defaultUser = 'nobody';

/** Never root. @returns undefined for an agent that is not root: it cannot be anybody else */
function userOf(
  { isRoot }: SandboxCapabilities,
  { user }: HookSandboxSettings,
  readers: readonly number[],
): BoxUser | undefined {
  if (!isRoot && user === undefined) return undefined;
  const ids = lookUp(user ?? defaultUser);
  if (ids.uid === 0) throw broken(`${user} is root`);
  if (isRoot) return { ...ids, groups: [...new Set([...ids.groups, ...readers])] };
  if (ids.uid === process.getuid?.()) return undefined;
  throw broken(`only an agent of root can run it as ${user}`);
}

function lookUp(user: string | number): BoxUser {
  try {
    return lookUpUser(user);
  } catch (error) {
    throw broken(error instanceof Error ? error.message : String(error));
  }
}

function broken(reason: string): WritError {
  return new WritError('SANDBOX_BROKEN', reason, { facts: { reason } });
}

/**
 * What is hidden first, then what was asked for, then our own: no bind can bring the state directory back, or put
 * something else in the place of policy. Sealed last, when every place to mount on has been made.
 */
function mountsOf(
  { paths, view, secrets = [] }: ConfineOptions,
  asked: HookSandboxSettings,
  scratch: string,
): BoxMount[] {
  const state = fs.realpathSync(paths.state);
  const places = hiddenPlaces(paths);
  const hidden = places.flatMap((path) => (fs.existsSync(path) ? [fs.realpathSync(path)] : []));
  const empty = (path: string): BoxMount => ({ kind: 'empty', path });
  const sealed = (path: string): BoxMount => ({ kind: 'sealed', path });
  return [
    ...hidden.map(empty),
    ...asked.binds.flatMap((path) => bind('read-only', path)),
    ...asked.writable.flatMap((path) => bind('writable', path)),
    ...secrets.flatMap((path) => cover(path, places, asked)),
    empty(state),
    ...viewMounts(fs.realpathSync(paths.policy), view),
    ...bind('writable', scratch),
    sealed(state),
    ...hidden.map(sealed),
  ];
}

/**
 * Its parents first, where they are hidden: bubblewrap would give them the mode of what is mounted, and a directory
 * of ours is nobody's to enter. A path that is not there is bubblewrap's to name.
 */
function bind(kind: 'read-only' | 'writable', path: string): BoxMount[] {
  if (!fs.existsSync(path)) return [{ kind, from: path, to: path }];
  const real = fs.realpathSync(path);
  return [
    { kind: 'directory', path: dirname(real) },
    { kind, from: real, to: real },
  ];
}

/** Where it can be seen: a device that nobody can open. A command that needs the file has it in its binds, by name. */
function cover(
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
      [...hiddenPlaces(paths), paths.state].some((place) => path !== place && isBelow(path, place)) &&
      !shown.some((place) => isBelow(path, place)),
  );
}

// `writ doctor`, checks `permissions` and `apparmor`: whether the user of each worker can read the active generation, and whether its
// AppArmor profile mentions the policy directory. The judge* functions are pure.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { AgentConfig, WorkerGroupConfig } from '../../core/config/config.js';
import { orUndefined } from '../../core/errors.js';
import { listProcNames, readProcText } from '../../platform/process/proc-files.js';
import { findProcess } from '../../platform/process/processes.js';
import { resolveUser } from '../../platform/users/user-id.js';
import { readActive } from '../generations/generations.js';
import { hostPaths } from '../state/paths.js';
import type { Checks } from './doctor-context.js';
import { fail, type Judged, ok, skip, warn } from './judged.js';

/** The users and AppArmor profiles of the processes of a group. */
export interface WorkerAccess {
  readonly readers: readonly ReaderFacts[];
  readonly confined: readonly ConfinedFacts[];
}

/**
 * @param seen.workers names, as the driver lists them
 * @param seen.etc directory that contains apparmor.d
 * @returns no entry for a process that has ended or cannot be read
 */
export function readAccess(
  group: WorkerGroupConfig,
  seen: {
    readonly workers: readonly string[];
    readonly pids: readonly number[];
    readonly policy: string;
    readonly etc: string;
  },
): WorkerAccess {
  const { workers, pids, policy, etc } = seen;
  return {
    readers: [...pids.flatMap((pid) => readProcessUser(group.name, pid)), ...socketOwners(group, workers)],
    confined: pids.flatMap((pid) => readConfinement(group.name, pid, () => isInAnyProfile(policy, etc))),
  };
}

/**
 * Combines the facts of all groups into two checks. Reads nothing until a check is called.
 * @param groups names of all groups with workers to notify
 * @param accesses the users and profiles of each group; an empty list makes both checks skip
 * @returns two pairs of name and function, in this order: `permissions` (`FAIL` if a worker cannot read the active generation;
 *   `skip` without one) and `apparmor` (`warn` if an enforced profile does not mention the policy directory). A function may
 *   throw for an unreadable directory
 */
export function accessChecks(
  config: AgentConfig,
  groups: readonly string[],
  accesses: readonly WorkerAccess[],
): Checks {
  const { policy } = config;
  const readers = accesses.flatMap((one) => one.readers);
  const confined = accesses.flatMap((one) => one.confined);
  return [
    ['permissions', () => judgePermissions({ policy, groups, readers, parts: policyParts(config) })],
    ['apparmor', () => judgeConfinement(confined, policy)],
  ];
}

export interface ReaderFacts {
  readonly group: string;
  readonly uid: number;
  readonly gids: readonly number[];
}

function readProcessUser(group: string, pid: number): ReaderFacts[] {
  const uid = findProcess(pid)?.effectiveUid;
  if (uid === undefined) return [];
  const status = readProcText(`/proc/${pid}/status`, 65_536) ?? '';
  const groups = /^Groups:\t(.*)$/m.exec(status)?.[1] ?? '';
  const gid = /^Gid:\t\d+\t(\d+)/m.exec(status)?.[1] ?? '';
  const gids = [gid, ...groups.trim().split(/\s+/)].filter((one) => one !== '').map(Number);
  return [{ group, uid, gids }];
}

/**
 * The owner of a worker's socket is its user if the worker created the socket. A socket of root gives no user: its creator may have
 * changed its user since.
 */
function socketOwners({ name, reset }: WorkerGroupConfig, workers: readonly string[]): ReaderFacts[] {
  const glob = reset?.options[reset.driver];
  if (typeof glob !== 'string' || !glob.startsWith('/')) return [];
  return workers.flatMap((worker) => {
    const stat = fs.statSync(join(dirname(glob), worker), { throwIfNoEntry: false });
    if (stat?.isSocket() !== true || stat.uid === 0) return [];
    const { gid, groups } = resolveUser(stat.uid);
    return [{ group: name, uid: stat.uid, gids: [...new Set([gid, stat.gid, ...groups])] }];
  });
}

/** One path component between the root directory and a policy file, with the attributes that the kernel checks. */
export interface PathPart {
  readonly path: string;
  readonly kind: 'directory' | 'file';
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** @returns every path component to one file of each active bundle; undefined without an active generation, or if it is unreadable */
function policyParts(config: AgentConfig): PathPart[] | undefined {
  const active = orUndefined(() => readActive(hostPaths(config)));
  if (active === undefined) return undefined;
  const trees = fs.readdirSync(active.path).map((bundle) => fs.realpathSync(join(active.path, bundle)));
  const paths = [active.path, ...trees].flatMap(listAncestors);
  return [...new Set([...paths, ...trees.flatMap(firstFile)])].flatMap(partOf);
}

function listAncestors(path: string): string[] {
  return path === dirname(path) ? [path] : [...listAncestors(dirname(path)), path];
}

function firstFile(tree: string): string[] {
  const files = fs.readdirSync(tree, { withFileTypes: true }).filter((one) => one.isFile());
  return files.slice(0, 1).map(({ name }) => join(tree, name));
}

function partOf(path: string): PathPart[] {
  const stat = fs.statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return [];
  const { uid, gid, mode } = stat;
  return [{ path, kind: stat.isDirectory() ? 'directory' : 'file', uid, gid, mode }];
}

/**
 * Compares owner, group and mode; does not evaluate access control lists.
 * @returns the first component that the reader cannot traverse or read; undefined if there is none, and for root
 */
export function unreadablePart(reader: ReaderFacts, parts: readonly PathPart[]): PathPart | undefined {
  if (reader.uid === 0) return undefined;
  return parts.find(({ uid, gid, mode, kind }) => {
    const shift = uid === reader.uid ? 6 : reader.gids.includes(gid) ? 3 : 0;
    const wanted = kind === 'directory' ? 1 : 4;
    return ((mode >> shift) & wanted) !== wanted;
  });
}

export interface PermissionFacts {
  readonly policy: string;
  /** Undefined without an active generation. */
  readonly parts?: readonly PathPart[] | undefined;
  readonly readers: readonly ReaderFacts[];
  /** Names of all groups with workers to notify. */
  readonly groups: readonly string[];
}

/** @returns a failure for the first reader that cannot read policy; skipped without a generation or a known user */
export function judgePermissions({ policy, parts, readers, groups }: PermissionFacts): Judged {
  if (parts === undefined) return skip('no policy is active yet');
  if (readers.length === 0) return skip(`${policy}: the users of the workers are unknown`);
  for (const reader of readers) {
    const part = unreadablePart(reader, parts);
    if (part === undefined) continue;
    const what = part.kind === 'directory' ? 'pass' : 'read';
    const mode = (part.mode & 0o7777).toString(8);
    const text = `${reader.group} (uid ${reader.uid}) cannot ${what} ${part.path} (mode ${mode})`;
    return fail(text, `namei -l ${part.path}; \`mode\` and \`group\` of a bundle`);
  }
  const users = [...new Set(readers.map(({ uid }) => uid))].join(', ');
  const unknown = groups.filter((name) => !readers.some(({ group }) => group === name));
  const rest = unknown.length === 0 ? '' : `; the user of ${unknown.join(', ')} is unknown`;
  return ok(`${policy} can be read by uid ${users}${rest}`);
}

export interface ConfinedFacts {
  readonly group: string;
  readonly pid: number;
  /** As the kernel names it: `unconfined`, or `/usr/sbin/named (enforce)`. */
  readonly profile: string;
  /** Whether a profile or abstraction of this host contains the policy directory. */
  readonly isMentioned: boolean;
}

function readConfinement(group: string, pid: number, isMentioned: () => boolean): ConfinedFacts[] {
  const profile = readProcText(`/proc/${pid}/attr/current`, 4096)?.replaceAll('\u0000', '').trim();
  return profile === undefined || profile === '' ? [] : [{ group, pid, profile, isMentioned: isMentioned() }];
}

const maxProfiles = 500;
const maxProfileBytes = 256_000;

function isInAnyProfile(policy: string, etc: string): boolean {
  const folders = ['apparmor.d', 'apparmor.d/local', 'apparmor.d/abstractions'].map((name) =>
    join(etc, name),
  );
  const files = folders.flatMap((folder) => listProcNames(folder).names.map((name) => join(folder, name)));
  return files.slice(0, maxProfiles).some((file) => {
    const text = readProcText(file, maxProfileBytes) ?? '';
    return text.includes(policy) || text.includes('writ-policy');
  });
}

/** @returns a warning if an enforced profile does not mention the policy directory: the profile may forbid the worker to read it */
export function judgeConfinement(workers: readonly ConfinedFacts[], policy: string): Judged {
  if (workers.length === 0) return skip('the AppArmor profile of no worker can be read');
  const confined = workers.filter(({ profile }) => profile.endsWith('(enforce)'));
  const [first] = confined;
  if (first === undefined) return ok('no worker is confined');
  const text = `${first.group} (pid ${first.pid}) is confined by ${first.profile}`;
  if (confined.every(({ isMentioned }) => isMentioned)) return ok(`${text}, which mentions ${policy}`);
  return warn(`${text}, which does not mention ${policy}`, 'see AppArmor in docs/systemd.md');
}

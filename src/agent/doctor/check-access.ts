// `writ doctor` on the way from a worker to its policy: whether its user can read what is active, and what AppArmor makes of
// it. Facts are gathered and judged side by side; the judges are pure.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { AgentConfig, WorkerGroupConfig } from '../../core/config/config.js';
import { orUndefined } from '../../core/errors.js';
import { listProcNames, readProcText } from '../../platform/process/proc-files.js';
import { findProcess } from '../../platform/process/processes.js';
import { lookUpUser } from '../../platform/users/user-id.js';
import { readActive } from '../generations/generations.js';
import { hostPaths } from '../state/paths.js';
import type { Checks } from './doctor-context.js';
import { fail, type Judged, ok, skip, warn } from './judged.js';

/** What is seen of the processes of a group. */
export interface Access {
  readonly readers: readonly ReaderFacts[];
  readonly confined: readonly ConfinedFacts[];
}

export function accessOf(
  group: WorkerGroupConfig,
  seen: {
    readonly workers: readonly string[];
    readonly pids: readonly number[];
    readonly policy: string;
    readonly etc: string;
  },
): Access {
  const { workers, pids, policy, etc } = seen;
  return {
    readers: [...pids.flatMap((pid) => readerOf(group.name, pid)), ...socketOwners(group, workers)],
    confined: pids.flatMap((pid) => confinedOf(group.name, pid, () => profileNames(policy, etc))),
  };
}

/** @param groups names of all that have workers to notify */
export function accessChecks(
  config: AgentConfig,
  groups: readonly string[],
  looks: readonly Access[],
): Checks {
  const { policy } = config;
  const readers = looks.flatMap((one) => one.readers);
  const confined = looks.flatMap((one) => one.confined);
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

function readerOf(group: string, pid: number): ReaderFacts[] {
  const uid = findProcess(pid)?.effectiveUid;
  if (uid === undefined) return [];
  const status = readProcText(`/proc/${pid}/status`, 65_536) ?? '';
  const groups = /^Groups:\t(.*)$/m.exec(status)?.[1] ?? '';
  const gid = /^Gid:\t\d+\t(\d+)/m.exec(status)?.[1] ?? '';
  const gids = [gid, ...groups.trim().split(/\s+/)].filter((one) => one !== '').map(Number);
  return [{ group, uid, gids }];
}

/** A worker that made its socket itself owns it; one of root may have been made by who is somebody else by now. */
function socketOwners({ name, reset }: WorkerGroupConfig, workers: readonly string[]): ReaderFacts[] {
  const glob = reset?.options[reset.driver];
  if (typeof glob !== 'string' || !glob.startsWith('/')) return [];
  return workers.flatMap((worker) => {
    const stat = fs.statSync(join(dirname(glob), worker), { throwIfNoEntry: false });
    if (stat?.isSocket() !== true || stat.uid === 0) return [];
    const { gid, groups } = lookUpUser(stat.uid);
    return [{ group: name, uid: stat.uid, gids: [...new Set([gid, stat.gid, ...groups])] }];
  });
}

/** A part of the way to policy, as the kernel judges it. */
export interface PathPart {
  readonly path: string;
  readonly kind: 'directory' | 'file';
  readonly uid: number;
  readonly gid: number;
  readonly mode: number;
}

/** @returns every part of the way to one file of each active bundle; undefined when nothing is active or it cannot be seen */
function policyParts(config: AgentConfig): PathPart[] | undefined {
  const active = orUndefined(() => readActive(hostPaths(config)));
  if (active === undefined) return undefined;
  const trees = fs.readdirSync(active.path).map((bundle) => fs.realpathSync(join(active.path, bundle)));
  const paths = [active.path, ...trees].flatMap(waysTo);
  return [...new Set([...paths, ...trees.flatMap(firstFile)])].flatMap(partOf);
}

function waysTo(path: string): string[] {
  return path === dirname(path) ? [path] : [...waysTo(dirname(path)), path];
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

/** @returns the first part that this user cannot pass or read, by owner, group and mode; lists of access are not seen */
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
  /** Undefined when nothing is active. */
  readonly parts?: readonly PathPart[] | undefined;
  readonly readers: readonly ReaderFacts[];
  /** All that have workers to notify. */
  readonly groups: readonly string[];
}

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
  /** Some profile or abstraction of this host names the policy directory. */
  readonly mentioned: 'yes' | 'no';
}

function confinedOf(
  group: string,
  pid: number,
  mentioned: () => ConfinedFacts['mentioned'],
): ConfinedFacts[] {
  const profile = readProcText(`/proc/${pid}/attr/current`, 4096)?.replaceAll('\u0000', '').trim();
  return profile === undefined || profile === '' ? [] : [{ group, pid, profile, mentioned: mentioned() }];
}

const maxProfiles = 500;
const maxProfileBytes = 256_000;

function profileNames(policy: string, etc: string): 'yes' | 'no' {
  const folders = ['apparmor.d', 'apparmor.d/local', 'apparmor.d/abstractions'].map((name) =>
    join(etc, name),
  );
  const files = folders.flatMap((folder) => listProcNames(folder).names.map((name) => join(folder, name)));
  const names = files.slice(0, maxProfiles).some((file) => {
    const text = readProcText(file, maxProfileBytes) ?? '';
    return text.includes(policy) || text.includes('writ-policy');
  });
  return names ? 'yes' : 'no';
}

export function judgeConfinement(workers: readonly ConfinedFacts[], policy: string): Judged {
  if (workers.length === 0) return skip('no worker whose profile can be seen');
  const confined = workers.filter(({ profile }) => profile.endsWith('(enforce)'));
  const [first] = confined;
  if (first === undefined) return ok('no worker is confined');
  const text = `${first.group} (pid ${first.pid}) is confined by ${first.profile}`;
  if (confined.every(({ mentioned }) => mentioned === 'yes')) return ok(`${text}, which mentions ${policy}`);
  return warn(`${text}, which does not mention ${policy}`, 'see AppArmor in docs/systemd.md');
}

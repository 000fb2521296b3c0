// What `writ doctor` looks at of workers: who of each group is there and lives, under which user, which of them answer for
// names, and what confines them. Gathers facts and judges none; no worker is told anything.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { AgentConfig, WorkerGroupConfig } from '../../core/config/config.js';
import { orUndefined, toWritError } from '../../core/errors.js';
import type { StatusReport } from '../../core/status/status.js';
import { createDurableFs } from '../../platform/disk/durable-fs.js';
import { listProcNames, readProcLink, readProcText } from '../../platform/process/proc-files.js';
import { findProcess } from '../../platform/process/processes.js';
import { silentLog } from '../../platform/telemetry/log.js';
import type { Clock } from '../../platform/time/clock.js';
import { lookUpUser } from '../../platform/users/user-id.js';
import { driverKinds } from '../../workers/registry.js';
import { readActive } from '../generations/generations.js';
import { createWorkerGroups, mapBounded, maxParallelTells } from '../notify/worker-groups.js';
import type { WorkerGroup } from '../state/host.js';
import { hostPaths } from '../state/paths.js';
import type { ConfinedFacts, GroupFacts, MemberFacts, PathPart, ReaderFacts } from './worker-rules.js';

export interface WorkerLook {
  readonly groups: readonly GroupFacts[];
  readonly readers: readonly ReaderFacts[];
  readonly confined: readonly ConfinedFacts[];
  /** Names of groups whose workers answer for names. */
  readonly resolverGroups: readonly string[];
}

export interface WorkerLookOptions {
  readonly config: AgentConfig;
  readonly clock: Clock;
  /** What the agent knows of workers that connect to it. */
  readonly told: StatusReport['workers'];
  readonly etc: string;
}

export async function lookAtWorkers(options: WorkerLookOptions): Promise<WorkerLook> {
  const { config, clock } = options;
  const groups = createWorkerGroups(config.workers, {
    kinds: driverKinds,
    runDirectory: config.run,
    log: silentLog(),
    clock,
    // Nothing is opened, so nothing is made on disk.
    durable: createDurableFs(),
    onLateAnswer: () => undefined,
  });
  const seen = await Promise.all(groups.map((group) => lookAtGroup(group, options)));
  return {
    groups: seen.flatMap(({ facts }) => (facts === undefined ? [] : [facts])),
    readers: seen.flatMap(({ readers }) => readers),
    confined: seen.flatMap(({ confined }) => confined),
    resolverGroups: seen.filter(({ answersNames }) => answersNames).map(({ name }) => name),
  };
}

interface GroupLook {
  readonly name: string;
  readonly facts?: GroupFacts;
  readonly readers: readonly ReaderFacts[];
  readonly confined: readonly ConfinedFacts[];
  readonly answersNames: boolean;
}

async function lookAtGroup(group: WorkerGroup, options: WorkerLookOptions): Promise<GroupLook> {
  const { config, driver } = group;
  const { name, reset } = config;
  if (driver === undefined || reset === undefined)
    return { name, readers: [], confined: [], answersNames: false };
  const common = { group: name, driver: reset.driver, min: reset.min };
  try {
    const workers = reset.driver === 'native' ? [] : await driver.members();
    const own = options.told.filter((one) => one.group === name);
    const names = reset.driver === 'native' ? own.map(({ worker }) => worker) : workers;
    const members = await mapBounded(names, maxParallelTells, (worker) => memberFacts(group, worker, own));
    const pids = await pidsOf(group, workers);
    return {
      name,
      facts: { ...common, members },
      readers: [...pids.flatMap((pid) => readerOf(name, pid)), ...socketOwners(config, workers)],
      confined: pids.flatMap((pid) => confinedOf(name, pid, options)),
      answersNames: reset.driver === 'kresd' || pids.some(listensOnNames),
    };
  } catch (error) {
    const facts = { ...common, members: [], unlisted: toWritError(error).message };
    return { name, facts, readers: [], confined: [], answersNames: reset.driver === 'kresd' };
  }
}

async function memberFacts(
  { driver }: WorkerGroup,
  worker: string,
  told: StatusReport['workers'],
): Promise<MemberFacts> {
  const liveness = (await driver?.liveness?.(worker)) ?? 'unknown';
  const state = told.find((one) => one.worker === worker)?.state;
  return { worker, liveness, ...(state === undefined ? {} : { state }) };
}

/** Where the driver knows them: a worker that only connects, or listens on a socket, has none that can be believed. */
async function pidsOf({ driver }: WorkerGroup, workers: readonly string[]): Promise<number[]> {
  const pids = await mapBounded(workers, maxParallelTells, async (worker) => driver?.pid?.(worker));
  return [...new Set(pids)].filter((pid) => pid !== undefined && findProcess(pid) !== undefined) as number[];
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

const namePort = ':0035 ';
const maxTableBytes = 4_000_000;
const maxDescriptors = 4096;

/** Whether a process has a socket on port 53, by the kernel's tables of sockets. */
function listensOnNames(pid: number): boolean {
  const inodes = ['udp', 'udp6', 'tcp', 'tcp6'].flatMap((table) => {
    const lines = (readProcText(`/proc/${pid}/net/${table}`, maxTableBytes) ?? '').split('\n').slice(1);
    return lines
      .map((line) => line.trim().split(/\s+/))
      .flatMap(([, local = '', , , , , , , , inode = '']) => (`${local} `.endsWith(namePort) ? [inode] : []));
  });
  if (inodes.length === 0) return false;
  const descriptors = listProcNames(`/proc/${pid}/fd`).names.slice(0, maxDescriptors);
  const links = new Set(descriptors.map((one) => readProcLink(`/proc/${pid}/fd/${one}`).text));
  return inodes.some((inode) => links.has(`socket:[${inode}]`));
}

function confinedOf(group: string, pid: number, { config, etc }: WorkerLookOptions): ConfinedFacts[] {
  const profile = readProcText(`/proc/${pid}/attr/current`, 4096)?.replaceAll('\u0000', '').trim();
  if (profile === undefined || profile === '') return [];
  return [{ group, pid, profile, mentioned: profileNames(config.policy, etc) }];
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

/** @returns every part of the way to one file of each active bundle; undefined when nothing is active or it cannot be seen */
export function policyParts(
  config: Pick<AgentConfig, 'state' | 'policy' | 'run' | 'socket'>,
): PathPart[] | undefined {
  const active = orUndefined(() => readActive(hostPaths(config)));
  if (active === undefined) return undefined;
  const trees = fs.readdirSync(active.path).map((bundle) => fs.realpathSync(join(active.path, bundle)));
  const files = trees.flatMap((tree) => firstFile(tree) ?? []);
  const paths = [active.path, ...trees].flatMap((path) => [...waysTo(path)]);
  return [...new Set([...paths, ...files])].flatMap(partOf);
}

function waysTo(path: string): string[] {
  return path === dirname(path) ? [path] : [...waysTo(dirname(path)), path];
}

function firstFile(tree: string): string | undefined {
  const entry = fs.readdirSync(tree, { withFileTypes: true }).find((one) => one.isFile());
  return entry === undefined ? undefined : join(tree, entry.name);
}

function partOf(path: string): PathPart[] {
  const stat = fs.statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return [];
  const { uid, gid, mode } = stat;
  return [{ path, kind: stat.isDirectory() ? 'directory' : 'file', uid, gid, mode }];
}

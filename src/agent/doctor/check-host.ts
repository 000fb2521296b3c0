// `writ doctor`, checks `configuration`, `state` and `agent`: the configuration, the free space and safety of the directories, and the
// agent. The judge* functions are pure. The only write is a directory in staging, which is removed again: `sync -f` tests the flush, and
// access(2) tests the right to write.
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import type { AgentConfig } from '../../core/config/config.js';
import { type ConfigMistake, mistakeLine } from '../../core/config/config-errors.js';
import { isSystemError, isWritError, orUndefined, toWritError } from '../../core/errors.js';
import type { FreeSpace } from '../../core/release/disk-space.js';
import { sizeText } from '../../core/size-text.js';
import type { ServiceCommands } from '../../core/status/agent-service.js';
import type { AgentState } from '../../core/status/status.js';
import { canRenameDirectory } from '../../platform/disk/durable-rename.js';
import { findLockHolder } from '../../platform/disk/find-lock-holder.js';
import { readFreeSpace } from '../../platform/disk/free-space.js';
import { requireSafePathOrParent } from '../../platform/disk/safe-path.js';
import { runCommand } from '../../platform/process/run-command.js';
import type { AgentPlaces } from '../config/config-file.js';
import { requireOwnConfig } from '../config/config-file.js';
import { checkConfig, loadConfig } from '../config/load-config.js';
import { requireSameDevice } from '../startup/prepare-host.js';
import { hostPaths } from '../state/paths.js';
import { findVanished } from '../state-mark/state-mark.js';
import type { Checks, DoctorContext } from './doctor-context.js';
import { type CheckFailure, couldNotCheck, fail, failOf, type Judged, ok, warn } from './judged.js';

/** @returns the checks `state` and `agent`, which also run without a valid configuration */
export function hostChecks(context: DoctorContext): Checks {
  const { places, config } = context;
  return [
    ['state', async () => judgeState(await stateFacts(places, config))],
    ['agent', async () => judgeAgent(await agentFacts(context))],
  ];
}

/**
 * @param path of the configuration file
 * @returns its verdict; `config` is left out if an agent could not use the file either
 */
export function examineConfiguration(path: string): {
  readonly judged: Judged;
  readonly config?: AgentConfig;
} {
  try {
    const { warnings, config } = checkConfig(path);
    requireOwnConfig(path);
    return { judged: judgeConfiguration({ path, warnings }), config };
  } catch (error) {
    // A configuration that the agent accepts is enough for the other checks.
    const config = orUndefined(() => loadConfig(path).config);
    const judged = judgeConfiguration({ path, warnings: [], error: toWritError(error) });
    return config === undefined ? { judged } : { judged, config };
  }
}

export interface ConfigurationFacts {
  readonly path: string;
  readonly warnings: readonly ConfigMistake[];
  readonly error?: CheckFailure;
}

/** @returns the error in one line, else the first warning, each with the number of the others */
export function judgeConfiguration({ path, warnings, error }: ConfigurationFacts): Judged {
  const next = 'writ config check';
  if (error !== undefined) {
    const [head = '', first, ...more] = error.message.split('\n').map((line) => line.trim());
    const rest = more.length === 0 ? '' : ` (and ${more.length} more)`;
    return fail(first === undefined ? head : `${head} ${first}${rest}`, next, error.code);
  }
  const [warning] = warnings;
  if (warning === undefined) return ok(`${path}: no mistake`);
  const count = warnings.length === 1 ? '' : ` (${warnings.length} in all)`;
  return warn(`${path}:${mistakeLine(warning)}${count}`, next);
}

export interface StateFacts {
  readonly path: string;
  readonly presence: 'there' | 'absent';
  /** Why other users can change its directories, or why a swap is impossible there. */
  readonly unsafe?: CheckFailure | undefined;
  /** The error code of a write, such as EROFS. */
  readonly notWritable?: string | undefined;
  readonly free?: FreeSpace;
  /** Bytes that one release may need: an archive and a tree, each of the largest allowed size. */
  readonly needBytes: number;
  /** The error of `sync -f`; undefined if it succeeded. */
  readonly flushFailed?: string | undefined;
  /** False if the file system cannot rename a directory of an image layer; undefined if not tested. */
  readonly renames?: boolean | undefined;
}

const flushTimeoutMs = 30_000;

/** `f_type` of overlayfs (statfs(2), OVERLAYFS_SUPER_MAGIC). */
const overlayType = 0x794c7630;

async function stateFacts(places: AgentPlaces, config: AgentConfig | undefined): Promise<StateFacts> {
  const path = places.state;
  const near = nearestThere(path);
  const needBytes = config === undefined ? 0 : 2 * config.limits.maxArchiveBytes;
  const facts = { path, presence: near === path ? 'there' : 'absent', needBytes } as const;
  // First, because a user without the right to write cannot inspect the directory either.
  const notWritable = whyNotWritable(near);
  if (notWritable !== undefined) return { ...facts, notWritable };
  const unsafe = unsafeOf(places, near);
  if (unsafe !== undefined) return { ...facts, unsafe };
  const { trust, staging } = hostPaths(places);
  // The rename test is the only write of this check.
  const isOverlay = fs.existsSync(trust) && fs.statfsSync(trust).type === overlayType;
  const renames = isOverlay ? canRenameDirectory(trust, staging) : undefined;
  return { ...facts, free: readFreeSpace(near), flushFailed: await whyNotFlushed(near), renames };
}

function nearestThere(path: string): string {
  return fs.existsSync(path) || path === dirname(path) ? path : nearestThere(dirname(path));
}

function unsafeOf(places: AgentPlaces, near: string): CheckFailure | undefined {
  const paths = hostPaths(places);
  const { staging, partials, archives, generations, bundles } = paths;
  const vanished = findVanished(paths);
  if (vanished !== undefined) return vanished;
  try {
    for (const path of [near, places.policy, places.run, dirname(places.socket)])
      requireSafePathOrParent(path);
    if ([staging, partials, archives, generations, bundles].every((path) => fs.existsSync(path)))
      requireSameDevice(paths);
    return undefined;
  } catch (error) {
    if (!isWritError(error)) throw error;
    return error;
  }
}

function whyNotWritable(path: string): string | undefined {
  try {
    fs.accessSync(path, fs.constants.W_OK);
    return undefined;
  } catch (error) {
    return isSystemError(error) ? error.code : String(error);
  }
}

async function whyNotFlushed(path: string): Promise<string | undefined> {
  const argv = ['sync', '-f', path] as const;
  const result = await runCommand({ argv, timeoutMs: flushTimeoutMs, maxOutputBytes: 1000 });
  if (result.kind === 'exited') return result.exitCode === 0 ? undefined : result.stderr.trim();
  return result.kind === 'not-started' ? result.reason : result.kind;
}

const leastFreeBytes = 64_000_000;
const leastFreeInodes = 2000;

/** @returns the most severe fault of the state directory; ok with its free space if it has none */
export function judgeState(facts: StateFacts): Judged {
  const { path, presence, unsafe, notWritable, flushFailed, free, renames } = facts;
  if (unsafe !== undefined) return failOf(unsafe);
  if (notWritable === 'EACCES' || notWritable === 'EPERM')
    return warn(`${path} cannot be written by this user`, 'sudo writ doctor');
  if (notWritable !== undefined)
    return fail(`${path} cannot be written: ${notWritable}`, 'read dmesg; mount it rw');
  if (flushFailed !== undefined) return fail(`${path} cannot be flushed: ${flushFailed}`, 'read dmesg');
  const shortage = free === undefined ? undefined : judgeFreeSpace(free, facts);
  if (shortage !== undefined) return shortage;
  const left = free === undefined ? '' : `, ${sizeText(free.bytes)} free`;
  const what = presence === 'absent' ? 'created at the first start' : 'one file system, flushing works';
  const layers = renames === false ? ', directories of an image layer are copied (overlayfs)' : '';
  return ok(`${path}: ${what}${layers}${left}`);
}

function judgeFreeSpace(free: FreeSpace, { path, needBytes }: StateFacts): Judged | undefined {
  const next = `df -h ${path}; df -i ${path}`;
  const inodesShort = free.totalInodes > 0 && free.inodes < leastFreeInodes;
  if (free.bytes < leastFreeBytes || inodesShort) {
    const what = inodesShort ? `${free.inodes} inodes` : sizeText(free.bytes);
    return fail(`${path}: ${what} free, too little to work with`, next);
  }
  if (free.bytes >= needBytes) return undefined;
  const need = `the largest allowed release needs ${sizeText(needBytes)}`;
  return warn(`${path}: ${sizeText(free.bytes)} free, ${need}`, next);
}

export interface AgentFactsSeen {
  readonly socket: string;
  /** From the status report; left out without an answer. */
  readonly state?: AgentState | undefined;
  /** Why a running agent did not answer. */
  readonly error?: CheckFailure;
  /** Why this user cannot read the status. */
  readonly unknown?: string;
  /** Why the agent of the status report may have exited since. */
  readonly contactFailure?: CheckFailure | undefined;
  /** The age of status.json in milliseconds, if that file is the only source for this user. */
  readonly ageMs?: number | undefined;
  /** A text about the process with the lock; left out if the lock is free. */
  readonly lockHolder?: string | undefined;
  readonly versions: { readonly agent?: string; readonly own: string };
  readonly service: ServiceCommands;
}

async function agentFacts({
  hostStatus,
  places,
  version: own,
  service,
}: DoctorContext): Promise<AgentFactsSeen> {
  const common = { socket: places.socket, service };
  const { report } = hostStatus;
  if ('why' in hostStatus && report === undefined) {
    const { why } = hostStatus;
    if (hostStatus.kind === 'unknown') return { ...common, unknown: why.message, versions: { own } };
    if (why.code === 'AGENT_UNREACHABLE') return { ...common, error: why, versions: { own } };
  }
  if (report !== undefined && report.agent !== 'stop') {
    const contactFailure = report.problems.find(({ code }) => code === 'AGENT_UNREACHABLE');
    const ageMs = hostStatus.kind === 'file' ? hostStatus.ageMs : undefined;
    const seen = { contactFailure, ageMs, versions: { own, agent: report.version } };
    return { ...common, state: report.agent, ...seen };
  }
  return { ...common, state: report?.agent, lockHolder: await lockHolderText(places), versions: { own } };
}

/** @returns a text about the process with the lock; undefined if no living process is known to hold it */
async function lockHolderText(places: AgentPlaces): Promise<string | undefined> {
  const { lock } = hostPaths(places);
  if (!fs.existsSync(lock)) return undefined;
  const { alive, text } = await findLockHolder(lock);
  return alive === 'yes' ? text : undefined;
}

/** @returns a failure for an agent that runs and does not answer; a warning without an agent, or with another version */
export function judgeAgent(seen: AgentFactsSeen): Judged {
  const { socket, state, error, unknown, contactFailure, ageMs, lockHolder, versions, service } = seen;
  if (error !== undefined) return failOf(error);
  if (unknown !== undefined) return couldNotCheck(unknown);
  if (contactFailure !== undefined) return warn(contactFailure.message, contactFailure.hint);
  if (state === undefined || state === 'stop') {
    if (lockHolder !== undefined)
      return warn(`no agent answers on ${socket}; the lock is held by ${lockHolder}`, 'writ status');
    return warn('no agent runs: nothing is pulled automatically', service.start);
  }
  const { agent, own } = versions;
  if (agent !== undefined && agent !== own)
    return warn(`runs with version ${agent}, this program is ${own}`, service.restart);
  if (ageMs !== undefined)
    return ok(`state ${state}, by status.json, ${Math.round(Math.max(ageMs, 0) / 1000)} s old`);
  return ok(`answers on ${socket}, state ${state}`);
}

// What `writ doctor` looks at on the host itself. Gathers facts and judges none. Writes nothing: whether a flush works is
// asked of `sync -f`, whether writing does of the kernel.
import * as fs from 'node:fs';
import { dirname } from 'node:path';
import type { AgentConfig } from '../../core/config/config.js';
import { isSystemError, isWritError } from '../../core/errors.js';
import { readFreeSpace } from '../../platform/disk/disk-room.js';
import { findLockHolder } from '../../platform/disk/find-lock-owner.js';
import { runCommand } from '../../platform/process/run-command.js';
import { silentLog } from '../../platform/telemetry/log.js';
import type { AgentPlaces } from '../config/agent-places.js';
import { createSandbox } from '../hooks/sandbox.js';
import { requireSafePath, requireSameDevice } from '../startup/prepare-host.js';
import { hostPaths } from '../state/paths.js';
import type { SandboxFacts, StateFacts } from './host-rules.js';

const flushTimeoutMs = 30_000;

export async function stateFacts(places: AgentPlaces, config: AgentConfig | undefined): Promise<StateFacts> {
  const path = places.state;
  const near = nearestThere(path);
  const facts = { path, presence: near === path ? 'there' : 'absent', needBytes: needOf(config) } as const;
  // First: who may not write there may not look either.
  const notWritable = whyNotWritable(near);
  if (notWritable !== undefined) return { ...facts, notWritable };
  const unsafe = unsafeOf(places, near);
  if (unsafe !== undefined) return { ...facts, unsafe };
  const flushFailed = await whyNotFlushed(near);
  return { ...facts, free: readFreeSpace(near), ...(flushFailed === undefined ? {} : { flushFailed }) };
}

/** The archive and its tree, each as large as is allowed. */
function needOf(config: AgentConfig | undefined): number {
  return config === undefined ? 0 : 2 * config.limits.maxArchiveBytes;
}

function nearestThere(path: string): string {
  return fs.existsSync(path) || path === dirname(path) ? path : nearestThere(dirname(path));
}

function unsafeOf(places: AgentPlaces, near: string): StateFacts['unsafe'] {
  const paths = hostPaths(places);
  const { staging, archives, generations, bundles } = paths;
  try {
    for (const path of [near, nearestThere(places.policy)]) requireSafePath(path);
    if ([staging, archives, generations, bundles].every((path) => fs.existsSync(path)))
      requireSameDevice(paths);
    return undefined;
  } catch (error) {
    if (!isWritError(error)) throw error;
    const { code, message, hint } = error;
    return { code, message, hint };
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

/** @returns who holds the lock, for people; undefined when nobody is seen to */
export async function lockHolderText(places: AgentPlaces): Promise<string | undefined> {
  const { lock } = hostPaths(places);
  if (!fs.existsSync(lock)) return undefined;
  const { alive, text } = await findLockHolder(lock);
  return alive === 'yes' ? text : undefined;
}

/** Tries a command that does nothing, as an agent does before its first check. */
export async function sandboxFacts(config: AgentConfig | undefined): Promise<SandboxFacts> {
  const mode = config?.sandbox ?? 'auto';
  const commands = commandsOf(config);
  if (mode === 'off') return { mode, commands };
  // `auto`, for whatever is wished: what is missing is a finding here, not an error.
  // Without control groups: a look must not move this process into one.
  const findGroups = (): Promise<undefined> => Promise.resolve(undefined);
  const sandbox = createSandbox({ mode: 'auto', log: silentLog(), findGroups });
  try {
    await sandbox.open();
  } catch (error) {
    // A trial without an end of its own.
    if (!isWritError(error)) throw error;
  }
  return { mode, commands, seen: sandbox.status() };
}

function commandsOf(config: AgentConfig | undefined): number {
  const { bundles = [], workers = [] } = config ?? {};
  const checks = bundles.flatMap((bundle) =>
    bundle.checks.flatMap((one) => (one.kind === 'run' ? [one] : [])),
  );
  const hooks = workers.flatMap(({ load, probe }) => [load, probe].filter((one) => one !== undefined));
  const canaries = workers.filter(({ canary }) => canary !== undefined);
  return [...checks, ...hooks].filter(({ sandbox }) => sandbox !== 'off').length + canaries.length;
}

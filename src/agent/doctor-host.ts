// What `writ doctor` looks at on the host itself. Gathers facts and judges none. Writes nothing: whether a flush works is
// asked of `sync -f`, whether writing does of the kernel.
import * as fs from 'node:fs';
import { dirname, join } from 'node:path';
import type { AgentConfig } from '../core/config.js';
import type { SandboxFacts, StateFacts } from '../core/doctor-host.js';
import { isSystemError, toWritError } from '../core/errors.js';
import { findLockHolder } from '../platform/lock-holder.js';
import { defaultPath, runCommand } from '../platform/run-command.js';
import type { AgentPlaces } from './agent-places.js';
import { readFreeSpace } from './disk-room.js';
import { hostPaths } from './paths.js';
import { requireSafePath, requireSameDevice } from './prepare-host.js';

const flushTimeoutMs = 30_000;

export async function stateFacts(places: AgentPlaces, config: AgentConfig | undefined): Promise<StateFacts> {
  const path = places.state;
  const near = nearestThere(path);
  const facts = { path, presence: near === path ? 'there' : 'absent', needBytes: needOf(config) } as const;
  const unsafe = unsafeOf(places, near);
  if (unsafe !== undefined) return { ...facts, unsafe };
  const notWritable = whyNotWritable(near);
  if (notWritable !== undefined) return { ...facts, notWritable };
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
    const { code, message } = toWritError(error);
    return { code, message };
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

const sandboxPrograms = ['bwrap', 'setpriv', 'prlimit'];
const sandboxTimeoutMs = 10_000;

export async function sandboxFacts(config: AgentConfig | undefined): Promise<SandboxFacts> {
  const missing = sandboxPrograms.filter(
    (name) => !defaultPath.split(':').some((folder) => fs.existsSync(join(folder, name))),
  );
  const facts = { mode: modeOf(config), commands: commandsOf(config), missing };
  if (missing.includes('bwrap')) return facts;
  const box = [
    '--unshare-all',
    '--die-with-parent',
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    '--dev',
    '/dev',
  ];
  const argv = ['bwrap', ...box, 'true'] as const;
  const result = await runCommand({ argv, timeoutMs: sandboxTimeoutMs, maxOutputBytes: 1000 });
  if (result.kind === 'exited' && result.exitCode === 0) return facts;
  const said = 'stderr' in result ? result.stderr.trim().split('\n', 1)[0] : result.reason;
  return { ...facts, refused: said === undefined || said === '' ? result.kind : said };
}

function modeOf(config: AgentConfig | undefined): SandboxFacts['mode'] {
  const { sandbox } = (config ?? {}) as { readonly sandbox?: SandboxFacts['mode'] };
  return sandbox ?? (process.getuid?.() === 0 ? 'required' : 'auto');
}

function commandsOf(config: AgentConfig | undefined): number {
  const checks =
    config?.bundles.flatMap((bundle) => bundle.checks.filter(({ kind }) => kind === 'run')) ?? [];
  const hooks =
    config?.workers.flatMap(({ load, probe }) => [load, probe].filter((one) => one !== undefined)) ?? [];
  return checks.length + hooks.length;
}

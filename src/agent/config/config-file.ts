// Reads the text of the configuration file up to a bound, and the paths of the agent that uses the file. For these paths it
// reads four keys and validates nothing else, so that `writ status` starts fast and answers although another key is invalid.
import { accessSync, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { AgentConfig } from '../../core/config/config.js';
import { configError } from '../../core/config/config-errors.js';
import { maxConfigBytes, readConfigText } from '../../core/config/config-text.js';
import { defaultPlaces } from '../../core/config/config-values.js';
import { isSystemError, WritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import { requireSafePathOrParent } from '../../platform/disk/safe-path.js';

export const defaultConfigPath = '/etc/writ/agent.yaml';

/**
 * @returns the text of the file, at most one byte more than a configuration may have
 * @throws WritError CONFIG_UNREADABLE when it cannot be read or is no regular file
 */
export function readConfigFile(path: string): string {
  try {
    // O_NONBLOCK, because a FIFO in the place of the file would block the agent.
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!fstatSync(descriptor).isFile()) throw unreadable(path, 'it is not a regular file');
      return readUpTo(descriptor, maxConfigBytes + 1);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (isSystemError(error) && !(error instanceof WritError)) throw unreadable(path, reasonOf(error), error);
    throw error;
  }
}

function readUpTo(descriptor: number, maxBytes: number): string {
  const buffer = Buffer.allocUnsafe(maxBytes);
  let filled = 0;
  for (;;) {
    const count = readSync(descriptor, buffer, filled, maxBytes - filled, null);
    filled += count;
    if (count === 0 || filled === maxBytes) return buffer.toString('utf8', 0, filled);
  }
}

function reasonOf({ code, message }: NodeJS.ErrnoException): string {
  if (code === 'ENOENT') return 'it is not there';
  return code === 'EACCES' ? 'this user may not read it' : message;
}

/** The first error on a host that is not set up. */
function hintOf(path: string, cause: unknown): string | undefined {
  if (isSystemError(cause, 'EACCES')) return 'Use sudo, or give another file with --config.';
  if (!isSystemError(cause, 'ENOENT')) return undefined;
  return path === defaultConfigPath
    ? "This host is not set up: write this file (docs/configuration.md), put the publisher's root.json beside it, then run writ config check and writ pull; or give another file with --config."
    : 'Correct --config, or WRIT_CONFIG.';
}

function unreadable(path: string, reason: string, cause?: unknown): WritError {
  return new WritError('CONFIG_UNREADABLE', `the configuration ${path} cannot be read: ${reason}`, {
    facts: { path },
    ...given({ hint: hintOf(path, cause) }),
    cause,
  });
}

/**
 * Root runs the programs that the file names, so that only root may be able to change it. The agent of another user does not require
 * this, because in a container the files belong to the user that started it.
 * @throws WritError PATH_UNSAFE
 */
export function requireOwnConfig(path: string): void {
  if (process.getuid?.() === 0 && !isReadOnly(dirname(resolve(path)))) requireSafePathOrParent(path);
}

/** A read-only volume may have any mode: a ConfigMap of Kubernetes has 0777. */
function isReadOnly(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return false;
  } catch (error) {
    return isSystemError(error, 'EROFS');
  }
}

export type AgentPlaces = Pick<AgentConfig, 'state' | 'policy' | 'run' | 'socket'>;

/**
 * Reads the paths of the agent from its configuration file. Reads four keys, and validates no other key.
 * @param configPath of the configuration file
 * @returns absolute paths: `state`, `run`, `policy` (default: `policy` in the state directory) and `socket` (default:
 *   `agent.sock` in the run directory). A key that is missing or no absolute path gets its default
 * @throws WritError CONFIG_UNREADABLE if the file cannot be read or is no regular file; CONFIG_SYNTAX if it is no YAML or too
 *   long
 */
export function agentPlaces(configPath: string): AgentPlaces {
  const read = readConfigText(readConfigFile(configPath));
  if (!read.ok) throw configError(configPath, read.mistakes);
  const { data } = read;
  const state = pathIn(data, 'state') ?? defaultPlaces.state;
  const run = pathIn(data, 'run') ?? defaultPlaces.run;
  const policy = pathIn(data, 'policy') ?? `${state}/policy`;
  return { state, run, policy, socket: pathIn(data, 'socket') ?? `${run}/agent.sock` };
}

function pathIn(data: unknown, key: string): string | undefined {
  if (typeof data !== 'object' || data === null || !Object.hasOwn(data, key)) return undefined;
  const value = (data as Readonly<Record<string, unknown>>)[key];
  return typeof value === 'string' && value.startsWith('/') ? value : undefined;
}

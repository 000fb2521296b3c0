// Reads the configuration file's text, bounded, and knows where it lies. Shared by whoever needs the whole
// configuration and by commands that only look for the agent's socket; it judges nothing.
import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { maxConfigBytes } from '../../core/config/config-text.js';
import { isSystemError, WritError } from '../../core/errors.js';

export const defaultConfigPath = '/etc/writ/agent.yaml';

/**
 * @returns the text of the file, at most one byte more than a configuration may have
 * @throws WritError CONFIG_UNREADABLE when it cannot be read or is no regular file
 */
export function readConfigFile(path: string): string {
  try {
    // O_NONBLOCK: a FIFO in the file's place must not hang the agent for ever.
    const descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!fstatSync(descriptor).isFile()) throw unreadable(path, 'it is no regular file');
      return readUpTo(descriptor, maxConfigBytes + 1);
    } finally {
      closeSync(descriptor);
    }
  } catch (error) {
    if (isSystemError(error) && !(error instanceof WritError)) throw unreadable(path, error.message, error);
    throw error;
  }
}

function readUpTo(descriptor: number, maxBytes: number): string {
  const buffer = Buffer.alloc(maxBytes);
  let filled = 0;
  for (;;) {
    const count = readSync(descriptor, buffer, filled, maxBytes - filled, null);
    filled += count;
    if (count === 0 || filled === maxBytes) return buffer.toString('utf8', 0, filled);
  }
}

function unreadable(path: string, reason: string, cause?: unknown): WritError {
  return new WritError('CONFIG_UNREADABLE', `the configuration ${path} cannot be read: ${reason}`, {
    facts: { path },
    cause,
  });
}

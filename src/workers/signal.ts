// A daemon that re-reads its policy on a signal, found by its pid file. A signal has no answer, so that nothing
// here ever confirms. Never signals a process that cannot be the one the pid file means.
import { existsSync } from 'node:fs';
import { basename } from 'node:path';
import { isSystemError } from '../core/errors.js';
import {
  findProcess,
  type PidFile,
  type ProcessInfo,
  readPidFile,
  sendSignal,
} from '../platform/processes.js';
import { told, unreachable } from './answer.js';
import type { Answer, Driver, DriverKind } from './driver.js';

interface SignalOptions {
  readonly signal: 'HUP' | 'USR1' | 'USR2' | 'WINCH';
  readonly pidFile: string;
}

export const signal: DriverKind = {
  name: 'signal',
  properties: {
    // Signals that end a process by convention are no way to hand it a policy.
    signal: {
      type: 'string',
      enum: ['HUP', 'USR1', 'USR2', 'WINCH'],
      description: 'HUP, USR1, USR2 or WINCH',
    },
    pidFile: {
      type: 'string',
      pattern: '^/[^\\n\\u0000]*[^/\\n\\u0000]$',
      maxLength: 4096,
      description: 'an absolute path of a pid file, as /run/named/named.pid',
    },
  },
  required: ['pidFile'],
  create: (options) => createSignalDriver(options as unknown as SignalOptions),
};

function createSignalDriver(options: SignalOptions): Driver {
  let seen: ProcessInfo | undefined;
  return {
    verdictClass: 'silent',
    members: async () => {
      if (!existsSync(options.pidFile)) return [];
      const found = findWorker(options.pidFile);
      seen = typeof found === 'string' ? undefined : found;
      return [basename(options.pidFile)];
    },
    reset: async () => tell(options, seen),
    identity: async () => {
      const found = findWorker(options.pidFile);
      return typeof found === 'string' ? undefined : `${found.pid}@${found.startTicks}`;
    },
  };
}

function tell(options: SignalOptions, seen: ProcessInfo | undefined): Answer {
  const found = findWorker(options.pidFile);
  if (typeof found === 'string') return unreachable(found);
  const { pid, startTicks } = found;
  if (seen?.pid === pid && seen.startTicks !== startTicks) {
    return unreachable(`process ${pid} ended and another process has its pid`);
  }
  const errno = sendSignal(pid, `SIG${options.signal}`);
  if (errno !== undefined) return unreachable(`process ${pid} cannot be signalled: ${errno}`);
  return told(`SIG${options.signal} sent to process ${pid}`);
}

/** @returns the live process that the pid file means, or in words why there is none */
function findWorker(path: string): ProcessInfo | string {
  try {
    const file = readPidFile(path);
    if (file === undefined) return `${path} holds no pid`;
    const found = findProcess(file.pid);
    if (found === undefined) return `${path}: process ${file.pid} is dead`;
    return mayMean(file, found) ? found : `${path} belongs to another user than process ${file.pid}`;
  } catch (error) {
    if (isSystemError(error)) return `${path} cannot be read: ${error.code}`;
    throw error;
  }
}

/** A worker that may write its pid file must not be able to aim root's signal at somebody else's process. */
function mayMean(file: PidFile, found: ProcessInfo): boolean {
  return file.uid === 0 || file.uid === process.getuid?.() || file.uid === found.effectiveUid;
}

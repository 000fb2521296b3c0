// The daemon that a pid file means: alive, the same one as before, and of the user to whom the file belongs.
// Never takes a zombie for alive, nor a process that has only inherited the number.
import { isSystemError } from '../../core/errors.js';
import {
  findProcess,
  type PidFile,
  type ProcessInfo,
  readPidFile,
} from '../../platform/process/processes.js';
import type { Driver, Liveness } from '../contract/driver.js';

export type Daemon =
  | { readonly kind: 'found'; readonly process: ProcessInfo }
  /** `reason`: in words why there is none. */
  | { readonly kind: 'dead' | 'unknown'; readonly reason: string };

/** @returns the live process that the pid file means, or why there is none */
export function findDaemon(path: string): Daemon {
  try {
    const file = readPidFile(path);
    if (file === undefined) return { kind: 'unknown', reason: `${path} does not contain a pid` };
    const process = findProcess(file.pid);
    if (process === undefined) return { kind: 'dead', reason: `${path}: process ${file.pid} is dead` };
    if (mayMean(file, process)) return { kind: 'found', process };
    return { kind: 'unknown', reason: `${path} belongs to another user than process ${file.pid}` };
  } catch (error) {
    if (!isSystemError(error)) throw error;
    const kind = error.code === 'ENOENT' ? 'dead' : 'unknown';
    return { kind, reason: `${path} cannot be read: ${error.code}` };
  }
}

/** A worker that may write its pid file must not be able to aim root's signal at somebody else's process. */
function mayMean(file: PidFile, found: ProcessInfo): boolean {
  return file.uid === 0 || file.uid === process.getuid?.() || file.uid === found.effectiveUid;
}

/** Whether the process lives that a pid file means. */
export function livenessIn(path: string): Liveness {
  const { kind } = findDaemon(path);
  return kind === 'found' ? 'alive' : kind;
}

/** @param fileOf the pid file of a worker. @returns what such a file says of it, as drivers have it */
export function pidFileVerbs(
  fileOf: (worker: string) => string,
): Required<Pick<Driver, 'liveness' | 'pid' | 'identity'>> {
  const processOf = (worker: string): ProcessInfo | undefined => {
    const daemon = findDaemon(fileOf(worker));
    return daemon.kind === 'found' ? daemon.process : undefined;
  };
  return {
    liveness: async (worker) => livenessIn(fileOf(worker)),
    pid: async (worker) => processOf(worker)?.pid,
    identity: async (worker) => {
      const process = processOf(worker);
      return process && `${process.pid}@${process.startTicks}`;
    },
  };
}

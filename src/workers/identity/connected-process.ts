// Which process a worker on a connection is: its hello has a pid, and /proc names the process with that pid. Node has no
// SO_PEERCRED, so a worker can send a wrong pid. That hides its own restarts alone, and a worker can refuse any release anyway.
import { isSystemError } from '../../core/errors.js';
import { readProcText } from '../../platform/process/proc-files.js';
import { findProcess } from '../../platform/process/processes.js';

const maxProcBytes = 65_536;

/**
 * @param pid of the hello
 * @returns pid and start time; undefined where no process that could be this worker has the pid
 */
export function claimedProcess(pid: number): string | undefined {
  // The first process of another container says the same pid as the init of this host.
  if (pid <= 1) return undefined;
  try {
    const found = findProcess(pid);
    if (found === undefined || isKernelThread(pid) || isOfInnerNamespace(pid)) return undefined;
    return `${pid}@${found.startTicks}`;
  } catch (error) {
    // A /proc that hides the processes of other users.
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

/** Small pids of a container are those of kernel threads on its host. */
function isKernelThread(pid: number): boolean {
  return readProcText(`/proc/${pid}/cmdline`, maxProcBytes) === '';
}

/** Such a process knows itself by another pid than this one. */
function isOfInnerNamespace(pid: number): boolean {
  const status = readProcText(`/proc/${pid}/status`, maxProcBytes) ?? '';
  return /^NSpid:\t\d+\t/m.test(status);
}

// Finds the process of a connected worker: its hello has a pid, and /proc has the process. Node has no SO_PEERCRED, so that a worker can
// send a wrong pid. This hides only its own restarts, and a worker can refuse any release anyway.
import { isSystemError } from '../../core/errors.js';
import { readProcText } from '../../platform/process/proc-files.js';
import { findProcess } from '../../platform/process/processes.js';

const maxProcBytes = 65_536;

/**
 * @param pid in the hello of the worker
 * @returns PID@STARTTICKS; undefined if no process with this pid can be the worker: pid 1 or less, a kernel thread, a process of
 *   an inner pid namespace, or one that /proc hides
 */
export function claimedProcess(pid: number): string | undefined {
  // The first process of another container has the pid of this host's init.
  if (pid <= 1) return undefined;
  try {
    const found = findProcess(pid);
    if (found === undefined || isKernelThread(pid) || isOfInnerNamespace(pid)) return undefined;
    return `${pid}@${found.startTicks}`;
  } catch (error) {
    // This /proc hides the processes of other users.
    if (isSystemError(error)) return undefined;
    throw error;
  }
}

/** Detects kernel threads: their pids on the host are equal to small pids in a container. */
function isKernelThread(pid: number): boolean {
  return readProcText(`/proc/${pid}/cmdline`, maxProcBytes) === '';
}

/** Detects a process in an inner pid namespace, which has another pid there. */
function isOfInnerNamespace(pid: number): boolean {
  const status = readProcText(`/proc/${pid}/status`, maxProcBytes) ?? '';
  return /^NSpid:\t\d+\t/m.test(status);
}

// How much processor time one thread of this process has used: what it waited for on a busy machine is not in it. Reads
// /proc only; Node tells it of other threads from version 24 on.
import { readProcLink, readProcText, statFields } from './proc-files.js';

/** Linux gives times to programs in hundredths of a second, whatever it counts in. */
const msPerTick = 10;
const maxStatBytes = 4096;

/** @returns the kernel's id of the thread that asks; undefined where /proc does not say it */
export function ownThreadId(): number | undefined {
  const id = /\/task\/([0-9]+)$/.exec(readProcLink('/proc/thread-self').text ?? '')?.[1];
  return id === undefined ? undefined : Number(id);
}

/** @returns undefined for a thread that is gone, or where /proc does not say it */
export function threadCpuMs(threadId: number): number | undefined {
  const stat = readProcText(`/proc/self/task/${threadId}/stat`, maxStatBytes);
  const [user, system] = stat === undefined ? [] : statFields(stat).slice(11, 13).map(Number);
  return user === undefined || system === undefined ? undefined : (user + system) * msPerTick;
}

// The processor time of one thread of this process, without its waits on a busy machine. Reads /proc, because Node reports the
// time of other threads only since version 24.
import { readProcLink, readProcText, statFields } from './proc-files.js';

/** Milliseconds of a tick: Linux reports times to programs in hundredths of a second. */
const msPerTick = 10;
const maxStatBytes = 4096;

/** @returns the kernel id of the calling thread; undefined if /proc does not contain it */
export function ownThreadId(): number | undefined {
  const id = /\/task\/([0-9]+)$/.exec(readProcLink('/proc/thread-self').text ?? '')?.[1];
  return id === undefined ? undefined : Number(id);
}

/** @returns milliseconds; undefined for a thread that has ended, or if /proc does not contain it */
export function threadCpuMs(threadId: number): number | undefined {
  const stat = readProcText(`/proc/self/task/${threadId}/stat`, maxStatBytes);
  const [user, system] = stat === undefined ? [] : statFields(stat).slice(11, 13).map(Number);
  return user === undefined || system === undefined ? undefined : (user + system) * msPerTick;
}

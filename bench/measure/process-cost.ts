// The cost of a running process so far, by /proc: exact where the kernel counts nanoseconds (schedstat).
import { readdirSync, readFileSync } from 'node:fs';

/** The sum over running threads; the time of an ended thread is lost. */
export function cpuMsOf(pid: number): number {
  return readdirSync(`/proc/${pid}/task`)
    .map(
      (thread) => Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]) / 1e6,
    )
    .reduce((sum, ms) => sum + ms, 0);
}

/** The sum over a process and its running descendants. */
export function cpuMsOfTree(pid: number): number {
  const children = readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ').filter(Boolean).map(Number),
  );
  return children.reduce((sum, child) => sum + cpuMsOfTree(child), cpuMsOf(pid));
}

/** Resident just now. */
export function residentBytesOf(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return Number(kilobytes) * 1024;
}

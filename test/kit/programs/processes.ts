// Looks at other processes through /proc: who is alive, and waits, bounded, until somebody is not.
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** True for a process that runs; false for a zombie and for one that is not there. */
export function isAlive(pid: number): boolean {
  try {
    // The name is in parentheses and may hold anything; the state is the letter behind the last of them.
    const state = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0];
    return state !== 'Z' && state !== 'X';
  } catch {
    return false;
  }
}

/** SIGKILL takes effect soon, not at once: looks every few milliseconds, at most a minute. */
export async function isGone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 12_000 && isAlive(pid); tries++) await setTimeout(5);
  return !isAlive(pid);
}

/** @returns pids of the children of a process with one thread, as the master of nginx; none when it is gone */
export function childrenOf(pid: number): readonly number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return text.split(' ').filter(Boolean).map(Number);
}

// Reads the state of other processes from /proc, and waits for their end.
import { existsSync, readFileSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';

/** @returns true for a running process; false for a zombie and for a missing one */
export function isAlive(pid: number): boolean {
  try {
    // The name is in parentheses and may contain any character; the state is the letter after the last parenthesis.
    const state = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.[0];
    return state !== 'Z' && state !== 'X';
  } catch {
    return false;
  }
}

/** Waits at most a minute for the end of a process, because SIGKILL is asynchronous. @returns whether it ended */
export async function isGone(pid: number): Promise<boolean> {
  for (let tries = 0; tries < 12_000 && isAlive(pid); tries++) await setTimeout(5);
  return !isAlive(pid);
}

/** @returns pids of the children of a process with one thread, as the master of nginx; empty if it ended */
export function childrenOf(pid: number): readonly number[] {
  const path = `/proc/${pid}/task/${pid}/children`;
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return text.split(' ').filter(Boolean).map(Number);
}

// Other holders of a lock: another agent, or a process that inherited the lock without recording itself.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import type { LockOptions } from '../../../src/platform/disk/process-lock.js';
import { until } from '../assert/until.js';
import { type RunningScript, startScript } from '../cli/child-script.js';
import { fakeClock } from '../clock/fake-clock.js';

/** @returns options that do not wait for the lock, with a clock that skips sleeps */
export function lockOptions(path: string, overrides: Partial<LockOptions> = {}): LockOptions {
  return {
    path,
    holder: 'pull',
    waitMs: 0,
    clock: fakeClock({ mode: 'skip' }),
    durable: createDurableFs(),
    code: 'LOCK_HELD',
    ...overrides,
  };
}

export interface LockHolders {
  /** Starts another process that takes the lock as `agent`, prints a line, and keeps running. */
  start(path: string): Promise<RunningScript>;
  /** Ends all holders; call it after a failed test too, because a child would keep the test file from ending. */
  endAll(): void;
}

/** @returns a starter of processes that take the lock and hold it until `endAll` */
export function lockHolders(): LockHolders {
  const started: RunningScript[] = [];
  return {
    start: async (path) => {
      const holder = startScript(`
    const { takeLock } = await import(at('src/platform/disk/process-lock.js'));
    const { systemClock } = await import(at('src/platform/time/clock.js'));
    const { createDurableFs } = await import(at('src/platform/disk/durable-fs.js'));
    const durable = createDurableFs();
    await takeLock({ durable, path: ${JSON.stringify(path)}, holder: 'agent', waitMs: 0, clock: systemClock, code: 'LOCK_HELD' });
    console.log('held');
    setInterval(() => undefined, 1000);`);
      started.push(holder);
      assert.equal(await holder.firstLine, 'held');
      return holder;
    },
    endAll: () => {
      for (const { child } of started) child.kill('SIGKILL');
    },
  };
}

/** Kills the process with SIGKILL and waits for its end. */
export async function killHolder(holder: RunningScript): Promise<void> {
  const closed = new Promise((resolve) => holder.child.once('close', resolve));
  holder.child.kill('SIGKILL');
  await closed;
}

/** Runs `act` while a `sleep` holds a lock that it inherited from a shell, without a record of its holder. */
export async function heldBySleep(path: string, act: (pid: number) => Promise<void>): Promise<void> {
  const descriptor = fs.openSync(path, 'r+');
  const child = spawn('sh', ['-c', 'flock -n 3 && exec sleep 60'], {
    stdio: ['ignore', 'ignore', 'ignore', descriptor],
  });
  fs.closeSync(descriptor);
  const closed = new Promise((resolve) => child.once('close', resolve));
  try {
    await until(() => fs.readFileSync(`/proc/${child.pid}/comm`, 'utf8') === 'sleep\n');
    await act(child.pid ?? 0);
  } finally {
    child.kill('SIGKILL');
    await closed;
  }
}

// One process a state directory: a kernel lock on an open file, freed by the kernel on death, never unlinked.
// Node has no flock: the flock program takes the lock on our descriptor, and the lock stays with our open file.
import * as fs from 'node:fs';
import { WritError } from '../core/errors.js';
import type { Clock } from './clock.js';
import type { DurableFs } from './durable-fs.js';
import { runCommand } from './run-command.js';

export interface ProcessLock {
  release(): void;
}

export interface LockOptions {
  readonly path: string;
  /** Said to whoever finds the lock held, as `agent` or `pull`. */
  readonly holder: string;
  /** How long to wait for another holder; 0 tries once. */
  readonly waitMs: number;
  readonly clock: Clock;
  readonly durable: DurableFs;
  readonly code: 'LOCK_HELD' | 'REPOSITORY_LOCKED';
  readonly signal?: AbortSignal;
}

const retryMs = 200;
const maxHolderBytes = 200;

/**
 * Takes the lock, or says who holds it.
 * @throws WritError options.code when another process holds it past waitMs; DISK_DENIED, DISK_FULL,
 *   DISK_READ_ONLY or DISK_FAILED when the lock file cannot be opened or written; INTERNAL without the flock program
 */
export async function takeLock(options: LockOptions): Promise<ProcessLock> {
  const { path, clock, durable } = options;
  const descriptor = durable.openKept('lock.open', path, 0o600);
  const deadlineMs = clock.monotonicMs() + options.waitMs;
  try {
    while (!(await tryLock(descriptor))) {
      if (clock.monotonicMs() >= deadlineMs || options.signal?.aborted) throw held(options);
      await clock.sleep(retryMs, options.signal);
    }
    durable.rewrite('lock.holder', { descriptor, path }, `${options.holder} (pid ${process.pid})\n`);
  } catch (error) {
    fs.closeSync(descriptor);
    throw error;
  }
  let open = true;
  const release = (): void => {
    // A second close would hit whatever file has the number by then.
    if (open) fs.closeSync(descriptor);
    open = false;
  };
  return { release };
}

async function tryLock(descriptor: number): Promise<boolean> {
  const result = await runCommand({
    argv: ['flock', '-n', '3'],
    timeoutMs: 10_000,
    maxOutputBytes: 1024,
    extraDescriptors: [descriptor],
  });
  if (result.kind === 'exited' && (result.exitCode === 0 || result.exitCode === 1))
    return result.exitCode === 0;
  throw new WritError('INTERNAL', `flock did not run (${result.kind})`, {
    hint: 'Install util-linux, which has the flock program.',
    facts: { result },
  });
}

function held(options: LockOptions): WritError {
  const text = fs.readFileSync(options.path, 'utf8').slice(0, maxHolderBytes).trim();
  const holder = text === '' ? 'another process' : text;
  return new WritError(options.code, `${options.path} is held by ${holder}`, {
    facts: { holder, path: options.path },
  });
}

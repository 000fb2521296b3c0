// Allows one process per state directory, by a kernel lock on an open file. The kernel releases the lock when the process ends; the
// file is never removed. Node has no flock: the flock program locks a descriptor of this process, which keeps the lock.
import * as fs from 'node:fs';
import { orUndefined, WritError } from '../../core/errors.js';
import { findProcess } from '../process/processes.js';
import { runCommand } from '../process/run-command.js';
import { lstatIfPresent } from '../read-file.js';
import type { Clock } from '../time/clock.js';
import type { DurableFs } from './durable-fs.js';
import { encodeLockNote, findLockHolder, type LockHolder } from './find-lock-holder.js';

export interface ProcessLock {
  /** True while the path names the locked file. A file that replaced it could be locked by another process. */
  isInPlace(): boolean;
  release(): void;
}

export interface LockOptions {
  readonly path: string;
  /** The name of this holder in the error of another process, as `agent` or `pull`. */
  readonly holder: string;
  /** The longest wait for another holder, in milliseconds; 0 tries once. */
  readonly waitMs: number;
  readonly clock: Clock;
  readonly durable: DurableFs;
  readonly code: 'LOCK_HELD' | 'REPOSITORY_LOCKED';
  readonly signal?: AbortSignal;
  /** Called once, when the wait for another holder begins. */
  readonly onWait?: ((holder: LockHolder) => void) | undefined;
}

const retryMs = 200;

/**
 * Takes the lock. An abort of the signal ends the wait as the end of waitMs does, with the same error.
 * @throws WritError options.code if another process holds the lock after waitMs; its facts are `holder` (for people), `alive`,
 *   and as far as they are known `what`, `pid`, `command` and `sinceMs`; DISK_* if the lock file cannot be opened; LOCK_UNTRIED
 *   if no program can be started now; INTERNAL without the flock program
 */
export async function takeLock(options: LockOptions): Promise<ProcessLock> {
  const { path, clock, durable } = options;
  const descriptor = durable.openKept('lock.open', path, 0o600);
  const deadlineMs = clock.monotonicMs() + options.waitMs;
  let { onWait } = options;
  try {
    while (!(await tryLock(descriptor))) {
      if (clock.monotonicMs() < deadlineMs && !options.signal?.aborted) {
        onWait?.(await findLockHolder(path));
        onWait = undefined;
        await clock.sleep(retryMs, options.signal);
        continue;
      }
      const holder = await findLockHolder(path);
      // No holder is visible: the lock may have been released a moment ago, so try once more.
      if (holder.alive === 'yes' || !(await tryLock(descriptor))) throw lockHeldError(options, holder);
      break;
    }
    writeLockNote(options, descriptor);
  } catch (error) {
    fs.closeSync(descriptor);
    throw error;
  }
  let open = true;
  const release = (): void => {
    // Close only once: a later file may have the same descriptor number.
    if (open) fs.closeSync(descriptor);
    open = false;
  };
  return { release, isInPlace: () => open && isFileAt(path, descriptor) };
}

function isFileAt(path: string, descriptor: number): boolean {
  const there = lstatIfPresent(path);
  const ours = fs.fstatSync(descriptor);
  return there?.ino === ours.ino && there.dev === ours.dev;
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
  const isMissing = result.kind === 'not-started' && result.reason.includes('ENOENT');
  const code = isMissing || result.kind === 'exited' ? 'INTERNAL' : 'LOCK_UNTRIED';
  const why = result.kind === 'not-started' ? result.reason : result.kind;
  throw new WritError(code, `flock did not run (${why})`, {
    ...(isMissing ? { hint: 'Install util-linux, which has the flock program.' } : {}),
    facts: { result },
  });
}

/** Ignores errors of the disk, because the note is only for people and the lock holds without it. */
function writeLockNote({ durable, path, holder, clock }: LockOptions, descriptor: number): void {
  const { pid } = process;
  const startTicks = findProcess(pid)?.startTicks ?? 0;
  const note = encodeLockNote({ what: holder, pid, startTicks, sinceMs: clock.nowMs() });
  orUndefined(() => durable.rewrite('lock.holder', { descriptor, path }, note));
}

function lockHeldError({ path, code }: LockOptions, { text: holder, ...facts }: LockHolder): WritError {
  const since = facts.sinceMs === undefined ? '' : ` since ${new Date(facts.sinceMs).toISOString()}`;
  return new WritError(code, `${path} is held by ${holder}${since}`, { facts: { path, holder, ...facts } });
}

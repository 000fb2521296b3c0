// One process a state directory: a kernel lock on an open file, freed by the kernel on death, never unlinked.
// Node has no flock: the flock program takes the lock on our descriptor, and the lock stays with our open file.
import * as fs from 'node:fs';
import { orUndefined, WritError } from '../../core/errors.js';
import { findProcess } from '../process/processes.js';
import { runCommand } from '../process/run-command.js';
import { lookAt } from '../read-file.js';
import type { Clock } from '../time/clock.js';
import type { DurableFs } from './durable-fs.js';
import { encodeLockNote, findLockHolder, type LockHolder } from './find-lock-owner.js';

export interface ProcessLock {
  /** The path leads to the file that this process has locked: without that another process can lock another file there. */
  isInPlace(): boolean;
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
  /** Called once, where another process has the lock and is waited for. */
  readonly onWait?: ((holder: LockHolder) => void) | undefined;
}

const retryMs = 200;

/**
 * Takes the lock, or says who holds it.
 * @throws WritError options.code when another process holds it past waitMs; its facts are `holder`
 *   (for people), `alive`, and as far as they are known `what`, `pid`, `command` and `sinceMs`; DISK_* when the lock file
 *   cannot be opened; LOCK_UNTRIED where no program can be started now; INTERNAL without the flock program
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
      // Nobody is seen: perhaps it was freed a moment ago.
      if (holder.alive === 'yes' || !(await tryLock(descriptor))) throw held(options, holder);
      break;
    }
    leaveNote(options, descriptor);
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
  return { release, isInPlace: () => open && isFileAt(path, descriptor) };
}

function isFileAt(path: string, descriptor: number): boolean {
  const there = lookAt(path);
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

/** The lock is held all the same where the disk takes no note: it is only for people. */
function leaveNote({ durable, path, holder, clock }: LockOptions, descriptor: number): void {
  const { pid } = process;
  const startTicks = findProcess(pid)?.startTicks ?? 0;
  const note = encodeLockNote({ what: holder, pid, startTicks, sinceMs: clock.nowMs() });
  orUndefined(() => durable.rewrite('lock.holder', { descriptor, path }, note));
}

function held({ path, code }: LockOptions, { text: holder, ...facts }: LockHolder): WritError {
  const since = facts.sinceMs === undefined ? '' : ` since ${new Date(facts.sinceMs).toISOString()}`;
  return new WritError(code, `${path} is held by ${holder}${since}`, { facts: { path, holder, ...facts } });
}

// Daemons that re-read their policy on a signal, found by their pid files. A signal has no answer: nothing here
// confirms, but a master process that replaces its children, as nginx does, where the user asks for that proof.
// Never signals a process that cannot be the one the pid file means.
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { WritError } from '../../core/errors.js';
import {
  childrenOf,
  findProcess,
  isDraining,
  type ProcessInfo,
  sendSignal,
} from '../../platform/process/processes.js';
import { confirmed, notified, unreachable } from '../contract/answer.js';
import type { Answer, Driver, DriverContext, ResetOptions } from '../contract/driver.js';
import { driverKind, harmlessSignal, type OptionsOf, property, text } from '../shared/driver-options.js';
import { findDaemon, pidFileVerbs } from '../shared/pid-file.js';
import { isGlob, listByGlob, pathGlobPattern } from '../shared/socket-set.js';

const properties = {
  signal: harmlessSignal,
  pidFile: text(
    'an absolute path of a pid file, or a glob with wildcards in its last part only, as /run/named/named.pid',
    { pattern: pathGlobPattern, maxLength: 4096 },
  ),
  proof: property<'children'>({
    type: 'string',
    enum: ['children'],
    description: 'children (the daemon replaces all its child processes when it reloads, as nginx does)',
  }),
  onSilence: property<'rollback'>({
    type: 'string',
    enum: ['rollback'],
    description: 'rollback (a daemon that keeps all its children to the deadline has refused, as nginx does)',
  }),
};

type SignalOptions = OptionsOf<typeof properties, 'signal' | 'pidFile'>;

export const signal = driverKind({ name: 'signal', properties, required: ['pidFile'], create: createDriver });

function createDriver(options: SignalOptions, context: DriverContext): Driver {
  const { pidFile, proof, onSilence } = options;
  if (onSilence !== undefined && proof === undefined)
    throw new WritError(
      'CONFIG_INVALID',
      'reset.onSilence needs `proof: children`: who proves nothing is always silent',
    );
  const seen = new Map<string, ProcessInfo>();
  const fileOf = (worker: string): string => join(dirname(pidFile), basename(worker));
  return {
    verdictClass: proof === undefined ? 'silent' : 'true',
    members: async () => {
      const alone = existsSync(pidFile) ? [basename(pidFile)] : [];
      const workers = isGlob(pidFile) ? await listByGlob(pidFile, 'file') : alone;
      seen.clear();
      for (const worker of workers) {
        const daemon = findDaemon(fileOf(worker));
        if (daemon.kind === 'found') seen.set(worker, daemon.process);
      }
      return workers;
    },
    reset: async (worker, reset) => {
      const found = daemonToNotify(fileOf(worker), seen.get(worker));
      return typeof found === 'string' ? unreachable(found) : notify(options, found, reset, context);
    },
    ...pidFileVerbs(fileOf),
  };
}

/** @returns the process to signal, or in words why there is none */
function daemonToNotify(path: string, seen: ProcessInfo | undefined): ProcessInfo | string {
  const daemon = findDaemon(path);
  if (daemon.kind !== 'found') return daemon.reason;
  const { pid, startTicks } = daemon.process;
  const isReused = seen?.pid === pid && seen.startTicks !== startTicks;
  return isReused ? `process ${pid} ended and another process has its pid` : daemon.process;
}

async function notify(
  options: SignalOptions,
  daemon: ProcessInfo,
  { target: _, ...limits }: ResetOptions,
  { clock }: DriverContext,
): Promise<Answer> {
  const before = options.proof === undefined ? [] : childrenOf(daemon.pid);
  const { pid } = daemon;
  const errno = sendSignal(pid, `SIG${options.signal}`);
  if (errno !== undefined) return unreachable(`process ${pid} cannot be signalled: ${errno}`);
  const sent = `SIG${options.signal} sent to process ${pid}`;
  if (options.proof === undefined) return notified(sent);
  if (before.length === 0) return notified(`${sent}, which had no children that it could replace`);
  return watchReplacement(daemon, before, {
    sent,
    clock,
    onSilence: options.onSilence,
    ...limits,
  });
}

const lookAgainMs = 50;

/**
 * The proof that a master process has reloaded: every process that served before the signal is gone or drains its last
 * connections, and new ones are there. A master that refuses its new configuration keeps its children.
 * @param before the children that the master had before it was notified
 */
async function watchReplacement(
  master: ProcessInfo,
  before: readonly ProcessInfo[],
  options: Omit<ResetOptions, 'target'> &
    Pick<DriverContext, 'clock'> & {
      readonly sent: string;
      readonly onSilence: SignalOptions['onSilence'] | undefined;
    },
): Promise<Answer> {
  const { sent, timeoutMs, signal, clock, onSilence } = options;
  const count = before.length;
  const endMs = clock.monotonicMs() + timeoutMs;
  for (;;) {
    if (!isSame(master)) return unreachable(`${sent}, which died`);
    const left = before.filter(serves).length;
    // None of those before serves any more: one that does is new.
    if (left === 0 && childrenOf(master.pid).some(serves))
      return confirmed(`${sent}, which replaced its ${count} children`);
    // A master that is slow and one that refuses look alike: silence, never a no by itself.
    if (clock.monotonicMs() >= endMs || signal?.aborted === true) {
      const answer = unreachable(`${sent}: ${left} of its ${count} children still serve as before`);
      const isOver = onSilence === 'rollback' && signal?.aborted !== true;
      return isOver && keepsAll(master, before) ? { ...answer, silence: 'refuses' } : answer;
    }
    await clock.sleep(lookAgainMs, signal);
  }
}

/** It has the children that it had, no other, and none of them is stopped: who is stopped has not heard the signal. */
function keepsAll(master: ProcessInfo, before: readonly ProcessInfo[]): boolean {
  const isKnown = (child: ProcessInfo): boolean => before.some((one) => one.pid === child.pid);
  const runs = ({ pid }: ProcessInfo): boolean => findProcess(pid)?.stopped === 'no';
  return before.every(serves) && childrenOf(master.pid).every(isKnown) && [master, ...before].every(runs);
}

function isSame({ pid, startTicks }: ProcessInfo): boolean {
  return findProcess(pid)?.startTicks === startTicks;
}

function serves(one: ProcessInfo): boolean {
  return isSame(one) && !isDraining(one.pid);
}

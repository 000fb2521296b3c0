// Daemons that re-read their policy on a signal, found by `process` of their group or by their pid files. A signal has no answer: nothing here
// confirms, but a master process that replaces its children, as nginx does, where the user asks for that proof.
// Never signals a process that may be a stranger's: who it is is looked at in the same turn as the signal is sent.
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
import type { Answer, Daemon, Driver, DriverContext, ResetOptions } from '../contract/driver.js';
import { createWorkerProcess, processVerbs, type WorkerProcess } from '../identity/worker-process.js';
import { driverKind, harmlessSignal, type OptionsOf, property, text } from '../shared/driver-options.js';
import { livenessOfDaemon } from '../shared/pid-file.js';
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

type SignalOptions = OptionsOf<typeof properties, 'signal'>;

export const signal = driverKind({ name: 'signal', properties, create: createDriver });

function createDriver(options: SignalOptions, context: DriverContext): Driver {
  const { proof, onSilence } = options;
  if (onSilence !== undefined && proof === undefined)
    throw new WritError(
      'CONFIG_INVALID',
      'reset.onSilence needs `proof: children`: who proves nothing is always silent',
    );
  const { process, members } = findTargets(options, context);
  const seen = new Map<string, ProcessInfo>();
  return {
    verdictClass: proof === undefined ? 'silent' : 'true',
    members: async () => {
      const workers = await members();
      seen.clear();
      for (const worker of workers) {
        const daemon = await process.find(worker);
        if (daemon.kind === 'found') seen.set(worker, daemon.process);
      }
      return workers;
    },
    reset: async (worker, reset) => {
      process.searchNow(worker);
      const daemon = await process.find(worker);
      if (daemon.kind !== 'found') return notSignalled(daemon);
      return notify({ worker, daemon: daemon.process, process }, seen.get(worker), {
        options,
        reset,
        context,
      });
    },
    liveness: async (worker) => livenessOfDaemon(await process.find(worker)),
    ...processVerbs(process),
  };
}

interface Targets {
  readonly process: WorkerProcess;
  readonly members: () => Promise<readonly string[]>;
}

/** The workers of a pid file are those whose files are there; a unit and an address have one, whether it runs or not. */
function findTargets({ pidFile, signal }: SignalOptions, context: DriverContext): Targets {
  const { place } = context.process ?? {};
  const path = place?.kind === 'pidFile' ? place.path : pidFile;
  const pidFileOf = (worker: string): string => join(dirname(path ?? '/'), basename(worker));
  const process = createWorkerProcess({ process: context.process, pidFile, pidFileOf, signal }, context);
  if (process === undefined)
    throw new WritError('CONFIG_INVALID', 'reset.signal needs `process`, or `pidFile` beside it');
  const name = nameOf(process.place);
  if (name !== undefined) return { process, members: async () => [name] };
  const file = path ?? '/';
  const members = async (): Promise<readonly string[]> => {
    if (isGlob(file)) return listByGlob(file, 'file');
    return existsSync(file) ? [basename(file)] : [];
  };
  return { process, members };
}

function nameOf(place: WorkerProcess['place']): string | undefined {
  if (place.kind === 'unit') return place.unit;
  return place.kind === 'listens' ? basename(place.address) : undefined;
}

function notSignalled({ kind, reason, ...daemon }: Exclude<Daemon, { kind: 'found' }>): Answer {
  const answer = unreachable(daemon.hint === undefined ? reason : `${reason}: ${daemon.hint}`);
  return kind === 'unknown' ? { ...answer, code: 'PROCESS_UNKNOWN' } : answer;
}

interface Recipient {
  readonly worker: string;
  readonly daemon: ProcessInfo;
  readonly process: WorkerProcess;
}

interface Signalling {
  readonly options: SignalOptions;
  readonly reset: ResetOptions;
  readonly context: DriverContext;
}

async function notify(
  { worker, daemon, process }: Recipient,
  seen: ProcessInfo | undefined,
  { options, reset: { target: _, ...limits }, context: { clock } }: Signalling,
): Promise<Answer> {
  const { pid, startTicks } = daemon;
  if (seen?.pid === pid && seen.startTicks !== startTicks)
    return unreachable(`process ${pid} ended and another process has its pid`);
  const before = options.proof === undefined ? [] : childrenOf(pid);
  // From here to the signal nothing else may run: the number may be another process's a moment later.
  const now = process.confirm(worker, daemon);
  if (now.kind !== 'found') return notSignalled(now);
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

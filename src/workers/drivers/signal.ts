// Notifies daemons by a signal, found by `process` of their group or by their pid files. A signal has no answer, so that nothing
// confirms, except a master process that replaces its children, as nginx, if the user configures this proof. Never signals a process
// of another program: its identity is checked in the same run of the event loop that sends the signal.
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
      'reset.onSilence needs `proof: children`: without a proof every worker is silent',
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

/** Lists workers: one for each existing pid file, or one for a unit or an address, whether it runs or not. */
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
  // Do not await between here and the signal, because the pid may belong to another process a moment later.
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

const checkEveryMs = 50;

/**
 * Proves that a master process reloaded: each process that served before the signal has ended or drains its last connections, and new
 * processes serve. A master that refuses its new configuration keeps its children.
 * @param before the children of the master before the signal
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
    // No earlier child serves any more, so a serving child is new.
    if (left === 0 && childrenOf(master.pid).some(serves))
      return confirmed(`${sent}, which replaced its ${count} children`);
    // A slow master and a refusing one have the same state, so that the timeout alone is not a refusal.
    if (clock.monotonicMs() >= endMs || signal?.aborted === true) {
      const answer = unreachable(`${sent}: ${left} of its ${count} children still serve as before`);
      const isOver = onSilence === 'rollback' && signal?.aborted !== true;
      return isOver && keepsAll(master, before) ? { ...answer, silence: 'refuses' } : answer;
    }
    await clock.sleep(checkEveryMs, signal);
  }
}

/** @returns whether the master has exactly its earlier children and none is stopped; a stopped process did not handle the signal */
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

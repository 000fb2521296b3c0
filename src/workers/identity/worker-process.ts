// Finds the process of a worker by the `process` of its group: the main process of a unit, the process of a pid file, or the listening
// process. Caches the result and only checks it later, so that an idle agent has almost no cost. Searches again after the process
// ended. Also reads systemd's record of a unit. Sends no signal.
import { computeBackoffMs } from '../../core/backoff.js';
import type { ProcessConfig, ProcessPlace } from '../../core/config/config.js';
import { WritError } from '../../core/errors.js';
import { isLocalPlace, type ListenPlace } from '../../platform/process/listening-sockets.js';
import { runsProgram } from '../../platform/process/process-details.js';
import { findProcess, type ProcessInfo } from '../../platform/process/processes.js';
import type { Daemon, Driver, DriverContext } from '../contract/driver.js';
import { unitEndsSince } from '../protocols/unit-ends.js';
import { findDaemon, livenessOfDaemon, rememberExamined } from '../shared/pid-file.js';
import { isWorkerName } from '../shared/placeholders.js';
import { findListener, type KeptHolder, stillListens } from './listening-process.js';
import { findUnitFailure, findUnitProcess } from './unit-process.js';

export interface WorkerProcess {
  readonly place: ProcessPlace;
  /** Checks the cached process, and searches again if it ended. */
  find(worker: string): Promise<Daemon>;
  /** Checks the process synchronously, so that no other code runs between this check and a signal. */
  confirm(worker: string, process: ProcessInfo): Daemon;
  /** Resets the backoff, so that the next search is not delayed. */
  searchNow(worker: string): void;
  /** Record of systemd; undefined if the process is not given by a unit. */
  readonly record?: SupervisorRecord;
}

type SupervisorRecord = Required<Pick<Driver, 'endsSince' | 'failure'>>;

export interface WorkerProcessOptions {
  /** The key `process` of the group. */
  readonly process?: ProcessConfig | undefined;
  /** The key `reset.pidFile`, which 0.1.0 had in place of `process`. */
  readonly pidFile?: string | undefined;
  /** Address of the worker in the driver. Its process listens there, unless the group has `process`. */
  readonly listensAt?: ((worker: string) => ListenPlace | undefined) | undefined;
  /** The pid file of a worker, for drivers with one worker for each match of a glob. */
  readonly pidFileOf?: ((worker: string) => string) | undefined;
  /** The signal that the driver sends, as USR1. */
  readonly signal?: string | undefined;
}

type Context = Pick<DriverContext, 'clock' | 'programPath'>;

/**
 * @returns undefined if the processes of the group are unknown
 * @throws WritError CONFIG_INVALID for `process: none` with a program, or a program without a place
 */
export function createWorkerProcess(
  options: WorkerProcessOptions,
  context: Context,
): WorkerProcess | undefined {
  const { process, pidFile, listensAt, pidFileOf, signal } = options;
  const aliased: ProcessPlace | undefined =
    pidFile === undefined ? undefined : { kind: 'pidFile', path: pidFile };
  const place = process?.place ?? aliased;
  const program = process?.program;
  if (place?.kind === 'none') return undefined;
  if (place === undefined && listensAt === undefined) {
    if (program === undefined) return undefined;
    throw new WritError('CONFIG_INVALID', 'process.program needs `unit`, `pidFile` or `listens` beside it');
  }
  if (place?.kind === 'pidFile') {
    const fileOf = pidFileOf ?? ((worker: string): string | undefined => filled(place.path, worker));
    return byPidFile(place, { fileOf, program }, context);
  }
  if (place?.kind === 'unit') {
    const search = async (worker: string): Promise<Found> => {
      const unit = filled(place.unit, worker);
      return unit === undefined ? unfilled(worker) : findUnit(unit, program, context);
    };
    return { ...byKept(place, search, context), record: recordOf(place.unit, { ...context, signal }) };
  }
  const address = place?.address;
  const placeOf =
    address === undefined ? listensAt : (worker: string) => parsePlace(filled(address, worker) ?? '');
  const search = async (worker: string): Promise<Found> => {
    const at = placeOf?.(worker);
    if (at === undefined) return { kind: 'unknown', reason: `${worker}: where it listens is not known` };
    const found = await findListener(at, program, context.clock);
    return found.kind === 'found' ? { ...found, process: found.holder.process } : found;
  };
  return byKept(place ?? { kind: 'listens', address: '' }, search, context);
}

/**
 * @param at the address of `process.listens`; undefined where it is not set
 * @returns whether the address is on this host, so that its process can be found
 */
export function isFoundByListening(at: ListenPlace | undefined): boolean {
  return at !== undefined && isLocalPlace(at);
}

/** @returns undefined for a name that is not valid in a path or in the name of a unit */
function filled(text: string, worker: string): string | undefined {
  if (!text.includes('{worker}')) return text;
  return isWorkerName(worker) ? text.replaceAll('{worker}', () => worker) : undefined;
}

function unfilled(worker: string): Exclude<Daemon, { kind: 'found' }> {
  return { kind: 'unknown', reason: `${worker}: this name cannot stand for {worker}` };
}

/** @returns undefined if the text is not an address */
export function parsePlace(text: string): ListenPlace | undefined {
  if (text.startsWith('/')) return { path: text };
  const [, bracketed, plain, port] = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(text) ?? [];
  const host = bracketed ?? plain;
  return host === undefined || Number(port) > 65_535 ? undefined : { host, port: Number(port) };
}

function byPidFile(
  place: ProcessPlace,
  {
    fileOf,
    program,
  }: { readonly fileOf: (worker: string) => string | undefined; readonly program: string | undefined },
  { clock }: Context,
): WorkerProcess {
  const examined = rememberExamined(clock);
  // Read the pid file at each check, because the daemon may have written another pid.
  const readDaemon = (worker: string): Daemon => {
    const path = fileOf(worker);
    return path === undefined ? unfilled(worker) : findDaemon(path, { program, examined });
  };
  return {
    place,
    find: async (worker) => readDaemon(worker),
    confirm: (worker, process) => {
      const now = readDaemon(worker);
      return now.kind === 'found' && !isSame(now.process, process) ? replaced(process) : now;
    },
    searchNow: () => undefined,
  };
}

type Found =
  | Exclude<Daemon, { kind: 'found' }>
  | { readonly kind: 'found'; readonly process: ProcessInfo; readonly holder?: KeptHolder };

async function findUnit(unit: string, program: string | undefined, { programPath }: Context): Promise<Found> {
  const found = await findUnitProcess(unit, programPath);
  if (found.kind !== 'found' || program === undefined || runsProgram(found.process.pid, program))
    return found;
  return { kind: 'unknown', reason: `${unit}: process ${found.process.pid} does not run ${program}` };
}

/** Reads systemd's record, because only it distinguishes a restart by an operator from a crash. */
function recordOf(unit: string, context: Context & Pick<WorkerProcessOptions, 'signal'>): SupervisorRecord {
  return {
    endsSince: async (worker, mark) => {
      const name = filled(unit, worker);
      return name === undefined ? undefined : unitEndsSince(name, mark, context);
    },
    failure: async (worker) => {
      const name = filled(unit, worker);
      return name === undefined ? undefined : findUnitFailure(name, context.programPath);
    },
  };
}

/** Less than the 2 s between two observations in a bake time, so that each observation sees a restart and counts it. */
const cheapSearchGapMs = 1000;
const backoff = { firstMs: 2000, maxMs: 60_000 };
const maxKept = 4096;

interface Kept {
  readonly found: Found;
  /** Consecutive searches that read the open files of all processes and found no worker. */
  readonly costlyFailures: number;
  /** Earliest time of the next search, on the monotonic clock. */
  readonly notBeforeMs: number;
}

/** Searches with a backoff up to a minute if a search reads the open files of all processes and finds no worker. */
function byKept(
  place: ProcessPlace,
  search: (worker: string) => Promise<Found>,
  { clock }: Context,
): WorkerProcess {
  const kept = new Map<string, Kept>();
  const searching = new Map<string, Promise<Daemon>>();
  const searchFor = async (worker: string): Promise<Daemon> => {
    const found = await search(worker);
    // Only a listening place needs a search over all processes. A unit is queried by its name.
    const isCostly = place.kind === 'listens' && found.kind === 'unknown';
    const costlyFailures = isCostly ? (kept.get(worker)?.costlyFailures ?? 0) + 1 : 0;
    const gapMs = isCostly ? computeBackoffMs(costlyFailures, backoff) : cheapSearchGapMs;
    if (kept.size >= maxKept) kept.clear();
    kept.set(worker, { found, costlyFailures, notBeforeMs: clock.monotonicMs() + gapMs });
    return daemonOf(found);
  };
  return {
    place,
    find: (worker) => {
      const known = kept.get(worker);
      if (known?.found.kind === 'found' && isThere(known.found))
        return Promise.resolve(daemonOf(known.found));
      if (known !== undefined && known.found.kind !== 'found' && clock.monotonicMs() < known.notBeforeMs)
        return Promise.resolve(known.found);
      const running = searching.get(worker) ?? searchFor(worker).finally(() => searching.delete(worker));
      searching.set(worker, running);
      return running;
    },
    confirm: (worker, process) => {
      const found = kept.get(worker)?.found;
      if (found?.kind !== 'found' || !isSame(found.process, process) || !isThere(found))
        return replaced(process);
      return daemonOf(found);
    },
    searchNow: (worker) => {
      if (kept.get(worker)?.found.kind !== 'found') kept.delete(worker);
    },
  };
}

function daemonOf(found: Found): Daemon {
  return found.kind === 'found' ? { kind: 'found', process: found.process } : found;
}

function isThere({ process, holder }: Extract<Found, { kind: 'found' }>): boolean {
  if (holder !== undefined) return stillListens(holder);
  const now = findProcess(process.pid);
  return now !== undefined && isSame(now, process);
}

function isSame(one: ProcessInfo, other: ProcessInfo): boolean {
  return one.pid === other.pid && one.startTicks === other.startTicks;
}

function replaced({ pid }: ProcessInfo): Daemon {
  return { kind: 'dead', reason: `process ${pid} ended while it was about to be notified` };
}

type ProcessVerbs = Required<Pick<Driver, 'pid' | 'identity' | 'process'>> & Partial<SupervisorRecord>;

/** @returns the calls of a driver about processes; none if the processes are unknown */
export function processVerbs(process: WorkerProcess | undefined): Partial<ProcessVerbs> {
  if (process === undefined) return {};
  const found = async (worker: string): Promise<ProcessInfo | undefined> => {
    const daemon = await process.find(worker);
    return daemon.kind === 'found' ? daemon.process : undefined;
  };
  return {
    process: (worker) => process.find(worker),
    pid: async (worker) => (await found(worker))?.pid,
    identity: async (worker) => {
      const one = await found(worker);
      return one && `${one.pid}@${one.startTicks}`;
    },
    ...process.record,
  };
}

/** @returns the liveness call for drivers without a better check. Only a unit or a pid file names a process reliably. */
export function livenessVerb(process: WorkerProcess | undefined): Pick<Driver, 'liveness'> {
  if (process === undefined || process.place.kind === 'listens') return {};
  return { liveness: async (worker) => livenessOfDaemon(await process.find(worker)) };
}

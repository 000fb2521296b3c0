// The runs of a worker's process as an agent observes them: which process runs now, and how the ones before it ended. Pure.
import { given } from '../../core/given.js';
import type { Bake, ProcessEnd, WorkerLedger, WorkerRuns } from '../state/ledger.js';

/** Of one worker: more ends within bake times than `bake.restarts` can tolerate, and as many others as a comparison needs. */
const maxAttributedEnds = 104;
export const maxOtherEnds = 64;
const maxEndsOfObservation = 64;

/** One observation of a worker. */
export interface SeenRun {
  /** Undefined where no process was found, or the driver cannot identify it. */
  readonly process: string | undefined;
  /** True for the first observation of the worker by this process of Writ. */
  readonly isFirst?: boolean;
  /** When that process started, in clock ticks after boot; undefined where its name does not have that time. */
  readonly startTicks?: number | undefined;
  /** True where this observation found that no process of the worker runs. */
  readonly isDead?: boolean;
  /** The ends that its supervisor recorded since the last observation; undefined where nothing keeps such a record. */
  readonly record?:
    | {
        readonly abnormal: number;
        readonly clean: number;
        readonly unrecorded: number;
        readonly mark: string;
      }
    | undefined;
  /** Of a worker that is gone: how its supervisor gave up, and the command that starts it. */
  readonly failure?: string | undefined;
  readonly wasNotified: boolean;
  /** The process that was known has run since before the swap, and has deferred the release. */
  readonly hadNotTaken?: boolean;
  /** A release that the worker uses is in its bake time. */
  readonly isBaking: boolean;
}

export interface ObservationTime {
  readonly nowMs: number;
  /** Epoch milliseconds at which the driver was asked for the process; `nowMs` if left out. The answer may take seconds. */
  readonly askedAtMs?: number;
  /** As Clock.bootMs, at `askedAtMs`; left out: lifetimes are measured from observation to observation. */
  readonly bootMs?: number;
  readonly bootId: string;
}

/**
 * @returns the runs with this observation; undefined where no process is known. The same value where nothing changed, so that
 * nothing is written
 */
export function noteRun(
  known: WorkerRuns | undefined,
  seen: SeenRun,
  now: ObservationTime,
): WorkerRuns | undefined {
  const { nowMs, bootId } = now;
  const { process, record, failure, wasNotified, hadNotTaken, isBaking } = seen;
  const mark = record?.mark;
  // Processes of another boot ended with that boot, which shows nothing about the release.
  if (known === undefined || known.bootId !== bootId) return firstRun({ process, record }, { nowMs, bootId });
  const livedMs = lifetimeMs(known, seen, nowMs);
  const end = (kind: ProcessEnd['kind']): ProcessEnd => ({
    ...{ atMs: nowMs, livedMs, kind },
    ...(wasNotified ? { wasNotified } : {}),
    ...(isBaking ? { isAttributed: true } : {}),
  });
  const isOther = process !== undefined && isAnotherProcess(known.process, process);
  const found = endsOf(record, isOther, end);
  // Its successor may have taken the release since it ended, and then nothing else shows that it had deferred it.
  const ends = hadNotTaken === true || known.isUntaken === true ? withFirstNotTaken(found) : found;
  const isUntaken = hadNotTaken === true && ends.length === 0 && !isOther ? true : undefined;
  const gone = process === undefined && ends.length === 0 ? findGone(known, seen, now) : undefined;
  const kept = known.ends.filter((one) => one.atMs <= nowMs);
  if (
    ends.length === 0 &&
    process === known.process &&
    mark === known.mark &&
    failure === known.failure &&
    isUntaken === known.isUntaken &&
    gone === known.gone &&
    kept.length === known.ends.length
  )
    return known;
  const { failure: _, isUntaken: __, gone: ___, ...before } = withGap(known, seen, nowMs);
  return {
    ...{ ...before, ...given({ failure, isUntaken, gone }) },
    ...(mark === undefined ? {} : { mark }),
    process: process ?? known.process,
    sinceMs: isOther || ends.length > 0 ? nowMs : Math.min(known.sinceMs, nowMs),
    watchedSinceMs: Math.min(before.watchedSinceMs, nowMs),
    ends: newestEnds([...kept, ...ends]),
  };
}

/** So long an observed time is preferred to a longer one before it, because an older load shows less about the present one. */
const sufficientMs = 600_000;

/**
 * Of any number of ends in a time without an observer only one is known, so that time must not count as observed. One such time is
 * kept: the newest, or one from the end of a long observation until now.
 * @returns the same runs where this observer has observed the process before, it was not replaced, or each end was recorded; also in
 *   a bake time, because the comparison is with the time before the swap, which must stay known
 */
function withGap(
  known: WorkerRuns,
  { isFirst = false, isBaking, record, process = known.process }: SeenRun,
  nowMs: number,
): WorkerRuns {
  const isUnknown = isFirst && record === undefined && isAnotherProcess(known.process, process);
  if (!isUnknown || isBaking) return known;
  const gap = { fromMs: Math.min(known.sinceMs, nowMs), toMs: nowMs };
  const { watchedSinceMs, unobserved: older } = known;
  if (older === undefined) return { ...known, unobserved: gap };
  const earlierMs = older.fromMs - watchedSinceMs;
  return gap.fromMs - older.toMs >= Math.min(earlierMs, sufficientMs)
    ? { ...known, watchedSinceMs: older.toMs, unobserved: gap }
    : { ...known, unobserved: { ...gap, fromMs: older.fromMs } };
}

/** @returns the number that drivers put after the pid: for most of them the start time in clock ticks after boot */
export function startTicksInName(process: string): number | undefined {
  const [, ticks] = /^\d+@(\d+)$/.exec(process) ?? [];
  return ticks === undefined ? undefined : Number(ticks);
}

/** The kernel reports start times in hundredths of a second (USER_HZ). */
const msPerTick = 10;

/**
 * @returns milliseconds that the known process ran at most: until its successor started or was found, and no longer than until
 *   the first observation that found it gone, because its supervisor may wait before it starts the successor
 */
function lifetimeMs(known: WorkerRuns, seen: SeenRun, nowMs: number): number {
  const untilNextMs = startToStartMs(known, seen) ?? Math.max(0, nowMs - known.sinceMs);
  return Math.min(untilNextMs, known.gone?.livedMs ?? untilNextMs);
}

/**
 * Measures from start to start, because the time between two observations may exceed the lifetimes of several processes. No clock
 * that a person can set is involved.
 * @returns milliseconds; undefined where the known process was not replaced, or start times are not known
 */
function startToStartMs(
  known: Pick<WorkerRuns, 'process'>,
  { process, startTicks }: Pick<SeenRun, 'process' | 'startTicks'>,
): number | undefined {
  if (process === known.process || startTicks === undefined) return undefined;
  const ticks = startTicks - (startTicksInName(known.process) ?? Number.POSITIVE_INFINITY);
  // Another driver may have named the known process: a negative difference measures nothing.
  return ticks >= 0 ? ticks * msPerTick : undefined;
}

/**
 * @returns the first observation that found the known process gone; undefined while it may run. The time for which the process was
 *   observed is the least, because a name may have a number that is no start time
 */
function findGone(
  known: WorkerRuns,
  { isDead = false }: Pick<SeenRun, 'isDead'>,
  { nowMs, askedAtMs = nowMs, bootMs }: ObservationTime,
): WorkerRuns['gone'] {
  if (known.gone !== undefined) return known.gone;
  if (!isDead || known.process === '') return undefined;
  const startTicks = startTicksInName(known.process);
  const sinceStartMs = bootMs === undefined || startTicks === undefined ? 0 : bootMs - startTicks * msPerTick;
  return { atMs: nowMs, livedMs: Math.round(Math.max(0, askedAtMs - known.sinceMs, sinceStartMs)) };
}

/**
 * @param process as runs name it
 * @returns epoch milliseconds at which it started; undefined where its name has no start time, as those of supervisord
 */
export function processStartAtMs(
  process: string,
  { nowMs, bootMs }: { readonly nowMs: number; readonly bootMs: number },
): number | undefined {
  const startTicks = startTicksInName(process);
  if (startTicks === undefined || startTicks * msPerTick > bootMs) return undefined;
  return nowMs - bootMs + startTicks * msPerTick;
}

/** A connection where the process behind it is not known: the start of the agent that took it, and its number. */
const connectionName = /^(\d+)\.\d+$/;

/**
 * A connection ends with its agent, and the names of processes may be of another kind after an upgrade: two names show that a
 * process ended only where both are of processes, or of connections to one run of the agent.
 */
export function isAnotherProcess(known: string, now: string): boolean {
  if (known === '' || known === now) return false;
  return connectionName.exec(known)?.[1] === connectionName.exec(now)?.[1];
}

/**
 * @param answered of a worker in the ledger: boot, process and connection
 * @returns the process as runs name it; empty where none answered
 */
export function answeringProcess(answered = ''): string {
  const [process = ''] = answered.slice(answered.indexOf(':') + 1).split('/');
  return process;
}

function firstRun(
  { process, record }: Pick<SeenRun, 'process' | 'record'>,
  { nowMs, bootId }: ObservationTime,
): WorkerRuns | undefined {
  if (process === undefined && record === undefined) return undefined;
  const run = { process: process ?? '', sinceMs: nowMs, watchedSinceMs: nowMs, bootId, ends: [] };
  return record === undefined ? run : { ...run, mark: record.mark };
}

/** A process that replaced the first one read the release at its start. */
function withFirstNotTaken([first, ...later]: readonly ProcessEnd[]): readonly ProcessEnd[] {
  return first === undefined ? [] : [{ ...first, hadNotTaken: true }, ...later];
}

function endsOf(
  record: SeenRun['record'],
  isOther: boolean,
  end: (kind: ProcessEnd['kind']) => ProcessEnd,
): ProcessEnd[] {
  if (record === undefined) return isOther ? [end('unrecorded')] : [];
  const times = (count: number, kind: ProcessEnd['kind']): ProcessEnd[] =>
    Array.from({ length: Math.min(count, maxEndsOfObservation) }, () => end(kind));
  return [
    ...times(record.abnormal, 'abnormal'),
    ...times(record.clean, 'clean'),
    ...times(record.unrecorded, 'unrecorded'),
  ];
}

/** True within `spanMs` before the swap. An end within an earlier bake time does not count, because that release may have caused it. */
export function isBefore({ atMs, isAttributed }: ProcessEnd, { startedAtMs }: Bake, spanMs: number): boolean {
  return isAttributed !== true && atMs <= startedAtMs && atMs >= startedAtMs - spanMs;
}

/** The ends within a bake time have a limit of their own, so that they do not displace the ends that they are compared with. */
function newestEnds(ends: readonly ProcessEnd[]): readonly ProcessEnd[] {
  const attributed = ends.filter((one) => one.isAttributed === true).slice(-maxAttributedEnds);
  const others = ends.filter((one) => one.isAttributed !== true).slice(-maxOtherEnds);
  const kept = new Set([...attributed, ...others]);
  return kept.size === ends.length ? ends : ends.filter((one) => kept.has(one));
}

/** An end that was observed right before the swap may have the same time. */
export function isInBake({ atMs, hadNotTaken }: ProcessEnd, { startedAtMs }: Bake): boolean {
  return atMs > startedAtMs && hadNotTaken !== true;
}

/** @returns milliseconds that the process ran, from the later of its start and the swap */
export function ranInBakeMs({ atMs, livedMs }: ProcessEnd, { startedAtMs }: Bake): number {
  return Math.min(livedMs, atMs - startedAtMs);
}

/** @returns true where Writ notified the process of the entry, or a notification made it: either may be what ends it */
export function wasProcessNotified(entry: Pick<WorkerLedger, 'notifiedAtMs'> | undefined): boolean {
  return entry?.notifiedAtMs !== undefined;
}

/** @returns the member of the entry of a process that replaces the one of this entry */
export function precedingNotice(entry: WorkerLedger | undefined): Pick<WorkerLedger, 'followsNotified'> {
  return wasProcessNotified(entry) ? { followsNotified: true } : {};
}

/** @returns `followsNotified` of the entry for a result of the same process */
export function keptNotice(entry: WorkerLedger | undefined, process: string | undefined): true | undefined {
  return entry?.process === process ? entry?.followsNotified : undefined;
}

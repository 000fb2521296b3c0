// The failures of a release within its bake time: a table of rules over the observations of one worker group.
// Pure; docs/adr/0048-bake-time.md has the table with its reasons. Each rule errs on the side of keeping the release where
// a person or Writ itself may have ended a process.
import type { AgentConfig } from '../../core/config/config.js';
import type { Bake, BakeFailure, Ledger, ProcessEnd, WorkerLedger, WorkerRuns } from '../state/ledger.js';
import { countOrdinaryEnds, minEndsOfRate } from './ordinary-ends.js';
import { answeringProcess, isAnotherProcess, isBefore, isInBake, ranInBakeMs } from './runs-rules.js';

/** One worker of a group that uses the release. */
export interface BakingWorker {
  /** `group/worker`. */
  readonly key: string;
  readonly entry: WorkerLedger;
  /** Undefined where its driver cannot identify a process. */
  readonly runs: WorkerRuns | undefined;
  /** This observation found no process of the worker. */
  readonly isDead: boolean;
}

export interface BakingGroup {
  readonly group: string;
  /** So many workers must run. */
  readonly min: number;
  readonly workers: readonly BakingWorker[];
}

export interface EvidenceOptions {
  readonly bake: Bake;
  readonly forMs: number;
  readonly restarts: number;
  readonly nowMs: number;
}

type Rule = (group: BakingGroup, options: EvidenceOptions) => Finding | undefined;
type Finding = Pick<BakeFailure, 'cause' | 'text'>;

const rules: readonly Rule[] = [refusedLater, recordedEnds, unexplainedRestarts, wrongProbe];

/** @returns the first failure that the table finds; undefined while the release stands */
export function findFailure(
  groups: readonly BakingGroup[],
  options: EvidenceOptions,
): BakeFailure | undefined {
  const crashed = rebooted(options);
  if (crashed !== undefined) return { ...crashed, groups: [], atMs: options.nowMs };
  for (const group of groups) {
    for (const rule of rules) {
      const found = rule(group, options);
      if (found !== undefined) return { ...found, groups: [group.group], atMs: options.nowMs };
    }
  }
  return undefined;
}

/** One reboot may be a power cut. Two in one bake time, none of them in order, are a crash loop of the kernel. */
const abruptBoots = 2;

function rebooted({ bake }: EvidenceOptions): Finding | undefined {
  if ((bake.abruptBoots ?? 0) < abruptBoots) return undefined;
  const text = `the host booted ${bake.abruptBoots} times without an orderly shutdown`;
  return { cause: 'WORKER_DIED', text };
}

/** A worker that took the release, and refuses it now. */
function refusedLater({ workers }: BakingGroup): Finding | undefined {
  const refusing = workers.find(
    ({ entry }) =>
      entry.state === 'refused' && entry.goneAtMs === undefined && entry.confirmed === entry.wanted,
  );
  if (refusing === undefined) return undefined;
  return {
    cause: 'WORKER_REFUSED',
    text: `${refusing.key} refuses it after it had accepted it: ${refusing.entry.text}`,
  };
}

/**
 * Ends that the supervisor recorded as abnormal. A release is not at fault where its daemon always crashed as often. Where many
 * workers serve, one crash of one of them may be chance.
 */
function recordedEnds({ group, min, workers }: BakingGroup, options: EvidenceOptions): Finding | undefined {
  const counts = workers.map(({ runs }) => countRecorded(runs, options));
  const inBake = counts.reduce((sum, one) => sum + one.inBake, 0);
  const excess = inBake - counts.reduce((sum, one) => sum + one.before, 0);
  if (excess < 1) return undefined;
  const living = workers.filter(({ entry }) => isLiving(entry)).length;
  if (workers.length > 1 && excess < 2 && living >= min) return undefined;
  const after = Math.round((options.nowMs - options.bake.startedAtMs) / 1000);
  const subject = workers.length === 1 ? (workers[0]?.key ?? group) : `group ${group}`;
  return { cause: 'WORKER_DIED', text: `${subject} ended abnormally ${timesText(inBake)} within ${after} s` };
}

function isLiving({ goneAtMs, state, lives }: WorkerLedger): boolean {
  return goneAtMs === undefined && !(state === 'unreachable' && lives === 'no');
}

function countRecorded(
  runs: WorkerRuns | undefined,
  { bake, forMs, nowMs }: EvidenceOptions,
): { readonly inBake: number; readonly before: number } {
  if (runs === undefined) return { inBake: 0, before: 0 };
  const isCounted = (one: ProcessEnd): boolean => one.kind === 'abnormal';
  const abnormal = runs.ends.filter(isCounted);
  const before = abnormal.filter((one) => isBefore(one, bake, forMs)).length;
  // From three on they are a rate, and equal rates differ by chance: the first one too many would be no evidence.
  const ordinary = before < minEndsOfRate ? 0 : countOrdinaryEnds(runs, bake, { forMs, nowMs, isCounted });
  return { inBake: abnormal.filter((one) => isInBake(one, bake)).length, before: Math.max(before, ordinary) };
}

/**
 * Judges processes that were replaced without a record of their end: a person may have restarted them. They are a failure only if
 * more of them than the bundle tolerates ran for a short time, and more than is ordinary for the worker.
 */
function unexplainedRestarts({ workers }: BakingGroup, options: EvidenceOptions): Finding | undefined {
  for (const { key, runs } of workers) {
    const count = countUnexplained(runs, options);
    if (count === undefined || !count.isExceeded) continue;
    const after = Math.round((options.nowMs - options.bake.startedAtMs) / 1000);
    return {
      cause: 'WORKER_DIED',
      text: `${key} was restarted ${timesText(count.inBake)} within ${after} s`,
    };
  }
  return undefined;
}

/** @returns the restarts of one worker without a recorded cause; undefined where its processes cannot be identified */
export function countUnexplained(
  runs: WorkerRuns | undefined,
  { bake, forMs, restarts, nowMs }: EvidenceOptions,
): { readonly inBake: number; readonly isExceeded: boolean } | undefined {
  if (runs === undefined) return undefined;
  const unrecorded = runs.ends.filter((one) => one.kind === 'unrecorded');
  const all = unrecorded.filter((one) => isInBake(one, bake));
  // The first may follow from Writ's own notification or restart, and Writ's notification may have ended its successor.
  const counted = all.slice(1).filter((one, index) => !(index === 0 && one.wasNotified === true));
  const short = counted.filter((one) => ranInBakeMs(one, bake) < forMs / 3).length;
  const ordinary = countOrdinaryEnds(runs, bake, {
    ...{ forMs, nowMs },
    isCounted: (one) => one.kind === 'unrecorded',
  });
  const tolerated = runs.watchedSinceMs < bake.startedAtMs ? restarts : 2 * restarts;
  const isExceeded = short > Math.max(tolerated, ordinary);
  return { inBake: all.length, isExceeded };
}

/** A worker is notified once more after three wrong answers in a row; three more are a failure. */
const wrongAnswers = 3;

function wrongProbe({ workers }: BakingGroup): Finding | undefined {
  const wrong = workers.find(({ entry: { confirmed, wanted, probed, goneAtMs } }) => {
    if (goneAtMs !== undefined || confirmed !== wanted || probed === undefined) return false;
    return probed.wrong >= 2 * wrongAnswers;
  });
  if (wrong === undefined) return undefined;
  const { wrong: count = 0, text = '' } = wrong.entry.probed ?? {};
  return {
    cause: 'PROBE_FAILED',
    text: `the probe of ${wrong.key} failed ${timesText(count)} in a row: ${text}`,
  };
}

function timesText(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}

/** True where some living worker of each group has taken the release; a group that may be empty need not have one. */
export function isTaken(groups: readonly BakingGroup[]): boolean {
  return untakenGroups(groups).length === 0;
}

/** @returns names of the groups of which no living worker has taken the release */
export function untakenGroups(groups: readonly BakingGroup[]): string[] {
  return groupsWithout(groups, isTaker);
}

function groupsWithout(
  groups: readonly BakingGroup[],
  isCounted: (worker: BakingWorker) => boolean,
): string[] {
  const without = groups.filter(({ min, workers }) => {
    // One that stopped or left a moment ago may come back; it is forgotten after ten minutes.
    const isEmpty = workers.length === 0 && min === 0;
    return !isEmpty && !workers.some(isCounted);
  });
  return without.map(({ group }) => group);
}

/**
 * True where of each group some worker had taken the release before already, in the process that it has now. A process that died
 * between two observations proves nothing, because its successor has the release only since its own notification.
 * @param takersBefore what `findTakers` returned at the observation before
 */
export function isTakenSince(groups: readonly BakingGroup[], takersBefore: ReadonlySet<string>): boolean {
  const isSame = (worker: BakingWorker): boolean => isTaker(worker) && takersBefore.has(takerName(worker));
  return groupsWithout(groups, isSame).length === 0;
}

/** @returns the living workers that have taken the release, each with its process */
export function findTakers(groups: readonly BakingGroup[]): string[] {
  return groups.flatMap(({ workers }) => workers.filter(isTaker).map(takerName));
}

function takerName({ key, runs }: BakingWorker): string {
  return `${key} ${runs?.process ?? ''}`;
}

/** @returns whether the present process of the worker is alive and has taken the release of the bake time */
export function isTaker(worker: BakingWorker): boolean {
  return !worker.isDead && worker.runs?.gone === undefined && isLiving(worker.entry) && hasTaken(worker);
}

/** A worker that was not reached since may have stopped: what it took before shows nothing of the present. */
function hasTaken(worker: BakingWorker): boolean {
  const { accepted, confirmed, wanted, state } = worker.entry;
  if (state === 'unreachable' || isPendingSuccessor(worker)) return false;
  return accepted === wanted || confirmed === wanted || state === 'notified';
}

/** True where the present process is another one than took the release, and was neither notified nor probed. */
function isPendingSuccessor({ entry, runs }: BakingWorker): boolean {
  if (entry.appeared === true) return true;
  // The record of processes may be newer than the last reading of the members of the group.
  return runs !== undefined && isAnotherProcess(answeringProcess(entry.process), runs.process);
}

/** @returns keys of the workers with a process that replaced another one within the bake time, and was not notified yet */
export function findSuccessors(groups: readonly BakingGroup[], { startedAtMs }: Bake): string[] {
  const isInTime = ({ runs }: BakingWorker): boolean =>
    runs?.ends.some(({ atMs }) => atMs > startedAtMs) === true;
  const isSuccessor = (one: BakingWorker): boolean =>
    one.entry.goneAtMs === undefined && !one.isDead && isPendingSuccessor(one) && isInTime(one);
  return groups.flatMap(({ workers }) => workers.filter(isSuccessor).map(({ key }) => key));
}

/** True while the probe of a worker that has passed it for this release gives no answer. */
export function isSilent(groups: readonly BakingGroup[]): boolean {
  return silentWorkers(groups).length > 0;
}

/** @returns keys of the workers whose probe passed for this release and gives no answer now */
export function silentWorkers(groups: readonly BakingGroup[]): string[] {
  return keysWhere(groups, ({ probed }) => probed?.silence !== undefined);
}

/** True while a probe that this release had passed fails: the bake time does not end before that is decided. */
export function isDoubted(groups: readonly BakingGroup[]): boolean {
  return doubtedWorkers(groups).length > 0;
}

/** @returns keys of the workers whose probe passed for this release and fails now */
export function doubtedWorkers(groups: readonly BakingGroup[]): string[] {
  return keysWhere(groups, ({ probed }) => (probed?.wrong ?? 0) > 0);
}

/** The probe of a worker that has not proved the release shows nothing about the release. */
function keysWhere(groups: readonly BakingGroup[], isSo: (entry: WorkerLedger) => boolean): string[] {
  const proven = ({ entry: { confirmed, wanted, goneAtMs } }: BakingWorker): boolean =>
    goneAtMs === undefined && confirmed === wanted;
  return groups.flatMap(({ workers }) =>
    workers.filter((one) => proven(one) && isSo(one.entry)).map(({ key }) => key),
  );
}

export interface BakingGroupFacts {
  readonly config: Pick<AgentConfig, 'workers'>;
  readonly ledger: Pick<Ledger, 'workers' | 'runs'>;
  /** Whether an observation found no process of the worker, by its key `group/worker`; left out without an observation. */
  readonly isDead?: (key: string) => boolean;
}

/** @returns the groups that use the bundle */
export function bakingGroups(
  bundle: string,
  { config, ledger, isDead = () => false }: BakingGroupFacts,
): BakingGroup[] {
  const using = config.workers.filter((one) => one.uses.includes(bundle));
  return using.map(({ name, reset }): BakingGroup => {
    const workers = Object.entries(ledger.workers).filter(([key]) => key.startsWith(`${name}/`));
    return {
      group: name,
      min: reset?.min ?? 0,
      workers: workers.map(([key, entry]) => {
        return { key, entry, runs: ledger.runs?.[key], isDead: isDead(key) };
      }),
    };
  });
}

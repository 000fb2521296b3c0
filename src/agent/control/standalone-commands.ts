// Standalone runs of commands, for a host without a running agent: the same cycle, rollback, resume and scan as in an agent, under
// the same lock. Each recovers the host first, as the agent does at its start.
import type { AgentConfig } from '../../core/config/config.js';
import type { CycleEventLine, CycleResult } from '../../core/cycle/cycle-report.js';
import { policyStands } from '../../core/cycle/policy-stands.js';
import { isWritError } from '../../core/errors.js';
import { given } from '../../core/given.js';
import type { PauseResult, RefusalsResult, ResumeResult } from '../../core/protocol/control-protocol.js';
import type { VerifyResult } from '../../core/status/verify-report.js';
import { keepHeapSmall } from '../../platform/process/heap.js';
import { silentLog } from '../../platform/telemetry/silent-log.js';
import { systemClock } from '../../platform/time/clock.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { keepActive } from '../bake/keep-release.js';
import { recordBakeRollback } from '../bake/restore-settled.js';
import { loadToAct } from '../config/load-config.js';
import { createCollector } from '../cycle/collector.js';
import { afterExit, afterRepair } from '../cycle/combined-result-rules.js';
import { type RollbackRequest, rollBack } from '../cycle/rollback.js';
import { keepContact } from '../freshness/contact-memory.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { scrub } from '../integrity/scrub.js';
import { scrubAfterMismatch } from '../integrity/scrub-after-mismatch.js';
import { verifyPolicy } from '../integrity/verify-policy.js';
import { type CycleEnd, isOfOrder } from '../job/cycle-result.js';
import { exclusiveAlone } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { createRecorder } from '../job/record.js';
import { awaitWorkers, type OnWait } from '../notify/membership.js';
import { readStatusFile } from '../report/status-file.js';
import { isSeenByConnection } from '../runs/observe-runs.js';
import { repairNow } from '../select/pause.js';
import { closeHost, type LockRequest, openHost } from '../startup/open-host.js';
import { recoverHost } from '../startup/recover-host.js';
import { type StartEnd, type StartObservation, type StartOptions, startHost } from '../startup/start-host.js';
import type { Host } from '../state/host.js';
import { type HostPaths, hostPaths } from '../state/paths.js';
import type { RefusalChoice } from '../state/refusal-rules.js';
import { findVanished } from '../state-mark/state-mark.js';
import { repeatAfterDelay, withStandaloneHints } from './activation-delay.js';
import { type CycleHandlers, createExitRollbacks, runCycleWithExit } from './cycle-and-exit.js';
import { handleForget, handlePause, handleResume, recordNewState } from './operator-requests.js';
import { lockStandalone } from './standalone-lock.js';
import {
  publishStatus,
  reportToFleet,
  type StandaloneAnswer,
  standaloneStatus,
  watchRefreshes,
} from './standalone-status.js';

export interface StandaloneOptions {
  readonly configPath: string;
  readonly by: string;
  readonly version: string;
  readonly signal: AbortSignal;
  readonly onEvent: (event: CycleEventLine) => void;
}

type PullOptions = StandaloneOptions & { readonly force: boolean; readonly noBake?: true };

/**
 * Runs `writ pull` without an agent.
 * @throws WritError if it cannot begin: CONFIG_*, LOCK_HELD, ROOT_MISSING, STATE_DAMAGED
 */
export function pullStandalone(options: PullOptions): Promise<CycleResult> {
  // On a host without an agent the pulls scrub the policy. Each relies on the last full scan until the next one is due.
  const hasLaterScrub = !options.force;
  return withHost({ ...options, hasLaterScrub }, 'pull', async (host, started) => {
    const { damage, repaired, notices, notLoaded } = started;
    const { by, signal, onEvent, force } = options;
    await awaitWorkers(host, signal, reportAwaitedWorkers(onEvent));
    // The start could not repair the damage from local copies: try a download.
    const repair = damage !== undefined && !force ? await repairByDownload(host, signal) : undefined;
    const contact = keepContact(readStatusFile(host.paths), host.clock);
    const trigger = force ? 'force' : 'pull';
    const { record } = createRecorder();
    const exits = createExitRollbacks();
    const ends: CycleEnd[] = started.recovered === undefined ? [] : [started.recovered];
    const note: CycleHandlers['note'] = (end, asked) => {
      ends.push(end);
      record(host, end, asked);
    };
    const run = { trigger, by, signal, onEvent } as const;
    const watch = watchRefreshes(host, { version: options.version, contact, signal });
    const cycle = () => runCycleWithExit(host, run, { contact, onRefreshed: watch.onRefreshed, exits, note });
    const { result: ended, exit } = await repeatAfterDelay(cycle, {
      trigger,
      clock: host.clock,
      stop: signal,
    });
    await scrubAfterMismatch(ended, { host: () => host, exclusive: exclusiveAlone, signal });
    await watch.end();
    if (options.noBake === true) keepActive(host, ended, by);
    const result = afterExit(afterRepair(ended, (repair ?? repaired)?.result), exit);
    const warnings = [...notices, ...(notLoaded === undefined ? [] : [notLoaded]), ...result.warnings];
    const end = { last: exit?.result ?? result, contact: contact.read() };
    const status = () => standaloneStatus(host, options.version, end);
    const reportProblems = await reportToFleet(host, { ends, status, signal });
    return { answer: { ...withStandaloneHints(result), warnings: [...warnings, ...reportProblems] }, ...end };
  });
}

/** Reports the wait for workers before the cycle begins, with a cycle id of its own. */
function reportAwaitedWorkers(onEvent: StandaloneOptions['onEvent']): OnWait {
  return (wait) => onEvent({ type: 'workers.awaited', cycle: newCycleId(), ...wait });
}

async function repairByDownload(host: Host, signal: AbortSignal): Promise<CycleEnd | undefined> {
  try {
    const scan = await scrub(() => host, {
      cycle: newCycleId(),
      contents: 'digests',
      pace: unboundedPace(signal),
      repair: repairNow(host),
      download: 'yes',
      signal,
      exclusive: exclusiveAlone,
    });
    return scan.repair;
  } catch (error) {
    // Continue: the cycle reports the damage and the active generation.
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'the policy on disk could not be scanned');
    return undefined;
  }
}

/** Runs `writ verify` without an agent. Without a repair it works on a read-only disk. @throws WritError as pullStandalone */
export async function verifyStandalone(
  options: StandaloneOptions & { readonly repair: boolean },
): Promise<VerifyResult> {
  const config = loadToAct(options.configPath);
  try {
    return await verifyUnderLock(config, options);
  } catch (error) {
    if (!isWritError(error) || error.code !== 'DISK_READ_ONLY' || options.repair) throw error;
    return verifyWithoutLock(config, options);
  }
}

/** For a read-only disk, to which no other process can write, so that no lock is needed. Does not use the workers. */
async function verifyWithoutLock(
  config: AgentConfig,
  { version, by, signal, onEvent }: StandaloneOptions,
): Promise<VerifyResult> {
  const parts = { clock: systemClock, log: silentLog(), version };
  const host = await openHost({ ...config, workers: [] }, parts);
  try {
    const how = { host: () => host, exclusive: exclusiveAlone };
    return await verifyPolicy({ ...how, repair: 'no', by, signal, onEvent });
  } finally {
    await closeHost(host);
  }
}

async function verifyUnderLock(
  config: AgentConfig,
  options: StandaloneOptions & { readonly repair: boolean },
): Promise<VerifyResult> {
  const { by, signal, onEvent } = options;
  return underLock(config, options, 'verify', async (host) => {
    if (options.repair) {
      await awaitWorkers(host, signal, reportAwaitedWorkers(onEvent));
      const recovered = await recoverHost(host, { cycle: newCycleId(), signal });
      if (recovered !== undefined) createRecorder().record(host, recovered, {});
    }
    const repair = options.repair ? 'yes' : 'no';
    const how = { host: () => host, exclusive: exclusiveAlone };
    const answer = await verifyPolicy({ ...how, repair, by, signal, onEvent });
    return { answer, last: answer.repair };
  });
}

/** Runs `writ rollback` without an agent. @throws WritError as pullStandalone */
export function rollbackStandalone(
  options: StandaloneOptions & {
    readonly generation?: number;
    readonly reason?: string;
    readonly force?: boolean;
  },
): Promise<CycleResult> {
  return withHost(options, 'rollback', async (host, { recovered, left }) => {
    const { by, reason, signal, version } = options;
    await awaitWorkers(host, signal, reportAwaitedWorkers(options.onEvent));
    const end = await rollBack(host, { ...options, ...given({ left }) });
    createRecorder().record(host, end, { by, ...given({ reason }) });
    const { result } = end;
    if (isOfOrder(result)) return { answer: result };
    const status = () => standaloneStatus(host, version, { last: result });
    const ends = recovered === undefined ? [end] : [recovered, end];
    const reportProblems = await reportToFleet(host, { ends, status, signal });
    return { answer: { ...result, warnings: [...result.warnings, ...reportProblems] }, last: result };
  });
}

/**
 * Runs `writ resume` without an agent.
 * @param options.newState accepts a state directory that was emptied on purpose
 * @throws WritError as pullStandalone
 */
export function resumeStandalone(
  options: Omit<StandaloneOptions, 'onEvent'> & Pick<LockRequest, 'newState'>,
): Promise<ResumeResult> {
  const { by, newState, configPath } = options;
  const isAccepting = newState === true && findVanished(hostPaths(loadToAct(configPath))) !== undefined;
  return withHost(options, 'resume', async (host) => {
    const answer = handleResume(host, by);
    return { answer: isAccepting ? recordNewState(host, answer, by) : answer };
  });
}

/** Runs `writ pause` without an agent. @throws WritError as pullStandalone; USAGE */
export function pauseStandalone(
  options: Omit<StandaloneOptions, 'onEvent'> & { readonly reason: string; readonly untilMs?: number },
): Promise<PauseResult> {
  return withHost(options, 'pause', async (host) => ({ answer: handlePause(host, options) }));
}

/** Runs `writ refusals forget` without an agent. @throws WritError as pullStandalone; USAGE */
export function forgetStandalone(
  options: Omit<StandaloneOptions, 'onEvent'> & RefusalChoice,
): Promise<RefusalsResult> {
  const { by, bundle, serial } = options;
  const choice = given({ bundle, serial });
  return withHost(options, 'refusals', async (host) => ({ answer: handleForget(host, { by, ...choice }) }));
}

/** Runs a command under the lock, after the start of the host. @throws WritError as pullStandalone */
export async function withHost<T>(
  options: Omit<StandaloneOptions, 'onEvent'> &
    Pick<StartOptions, 'hasLaterScrub' | 'observe'> &
    Pick<LockRequest, 'newState'>,
  holder: LockRequest['holder'],
  act: (host: Host, started: StartEnd & Pick<RollbackRequest, 'left'>) => Promise<StandaloneAnswer<T>>,
): Promise<T> {
  const config = loadToAct(options.configPath);
  const paths = hostPaths(config);
  const before = readActiveNumber(paths);
  try {
    return await underLock(config, options, holder, async (host) => {
      const { signal, hasLaterScrub, observe = findUnprobedGroups } = options;
      const start = { cycle: newCycleId(), signal, observe };
      const started = await startHost(host, { ...start, ...given({ hasLaterScrub }) });
      if (started.recovered !== undefined) createRecorder().record(host, started.recovered, {});
      if (started.restored !== undefined) recordBakeRollback(host, started.restored);
      return act(host, { ...started, ...given({ left: before }) });
    });
  } catch (error) {
    const after = readActiveNumber(paths);
    throw after === undefined || after !== before ? error : policyStands(error, after);
  }
}

/** @returns the groups that a single command cannot observe: those with a probe, and those known only by connections to an agent */
async function findUnprobedGroups({ groups }: Host): Promise<StartObservation> {
  const unseenGroups = groups.flatMap(({ config: { probe, name }, driver }) =>
    probe !== undefined || isSeenByConnection(driver) ? [name] : [],
  );
  return { unseenGroups };
}

/** @returns the number of the active generation; undefined if `current` cannot be read */
function readActiveNumber(paths: HostPaths): number | 'none' | undefined {
  try {
    return activeGenerationNumber(paths) ?? 'none';
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

async function underLock<T>(
  config: AgentConfig,
  { signal, version, newState }: Omit<StandaloneOptions, 'onEvent'> & Pick<LockRequest, 'newState'>,
  holder: LockRequest['holder'],
  act: (host: Host) => Promise<StandaloneAnswer<T>>,
): Promise<T> {
  keepHeapSmall();
  const parts = { clock: systemClock, log: silentLog(), version };
  const lock = await lockStandalone(config, parts, { holder, signal, ...given({ newState }) });
  try {
    const host = await openHost(config, parts, lock);
    try {
      const { answer, ...end } = await act(host);
      // The first policy of a host creates the state mark for this boot.
      const vanished = host.stateMark?.renew();
      publishStatus(host, version, end);
      if (vanished === undefined) await createCollector().collectWhenDue(host);
      return answer;
    } finally {
      await closeHost(host);
    }
  } finally {
    lock.release();
  }
}

// The commands of a host without a running agent: the same cycle, rollback, resume and look, under the same lock.
// Recovers first, as the agent does at its start.
import type { AgentConfig } from '../../core/config/config.js';
import type { CycleEventLine, CycleResult } from '../../core/cycle/cycle-report.js';
import { policyStands } from '../../core/cycle/policy-stands.js';
import { isWritError } from '../../core/errors.js';
import type { PauseResult, ResumeResult } from '../../core/protocol/control-protocol.js';
import type { VerifyResult } from '../../core/status/verify-report.js';
import { readBootId } from '../../platform/process/boot-id.js';
import { keepHeapSmall } from '../../platform/process/heap.js';
import { silentLog } from '../../platform/telemetry/log.js';
import { systemClock } from '../../platform/time/clock.js';
import { unboundedPace } from '../../platform/time/rate-limit.js';
import { loadConfig } from '../config/load-config.js';
import { afterExit } from '../cycle/after-exit-rules.js';
import { afterRepair } from '../cycle/after-repair-rules.js';
import { createCollector } from '../cycle/collector.js';
import { rollBack } from '../cycle/rollback.js';
import { runSync } from '../cycle/sync-cycle.js';
import { createUntrustedExit } from '../cycle/untrusted-exit.js';
import { contactIn, keepContact } from '../freshness/contact-memory.js';
import { createStaleWatch } from '../freshness/stale-watch.js';
import { activeGenerationNumber } from '../generations/generations.js';
import { scrub } from '../integrity/scrub.js';
import { verifyPolicy } from '../integrity/verify-policy.js';
import type { CycleEnd } from '../job/cycle-result.js';
import { exclusiveAlone } from '../job/exclusive.js';
import { newCycleId } from '../job/progress.js';
import { createRecorder } from '../job/record-cycle.js';
import { awaitWorkers } from '../notify/await-workers.js';
import { readStatusFile, writeStatusFile } from '../report/status-file.js';
import { type AgentFacts, statusReport } from '../report/status-report.js';
import { repairNow } from '../select/pause.js';
import { closeHost, type LockRequest, lockHost, openHost } from '../startup/open-host.js';
import { recoverHost } from '../startup/recover-host.js';
import { type Started, startHost } from '../startup/start-host.js';
import type { Host } from '../state/host.js';
import { type HostPaths, hostPaths } from '../state/paths.js';
import { orderPause, orderResume } from './operator-requests.js';
import { inTurn, withoutAgent } from './wait-for-turn.js';

export interface AloneOptions {
  readonly configPath: string;
  readonly by: string;
  readonly version: string;
  readonly signal: AbortSignal;
  readonly onEvent: (event: CycleEventLine) => void;
}

const lockWaitMs = 10_000;

/**
 * `writ pull` without an agent.
 * @throws WritError when it cannot begin: configuration, LOCK_HELD, ROOT_MISSING, STATE_DAMAGED
 */
export function pullAlone(options: AloneOptions & { readonly force: boolean }): Promise<CycleResult> {
  return withHost(options, 'pull', async (host, { damage, repaired, notices, notLoaded }) => {
    const { by, signal, onEvent } = options;
    await awaitWorkers(host, signal);
    // What this host has was not enough at the start: now the network may be asked.
    const mended = damage !== undefined && !options.force ? await mendByDownload(host, signal) : undefined;
    const contact = keepContact(readStatusFile(host.paths), host.clock);
    const trigger = options.force ? 'force' : 'pull';
    const sync = async (): Promise<CycleEnd> => {
      const ended = await runSync(host, { trigger, by, signal, onEvent });
      createRecorder().record(host, ended, { by });
      contact.note(ended.refresh);
      return ended;
    };
    const end = await inTurn(sync, { trigger, clock: host.clock, stop: signal });
    const left = await createUntrustedExit().afterCycle(host, end, signal);
    if (left !== undefined) createRecorder().record(host, left, { by: 'writ', reason: 'UNTRUSTED_ACTIVE' });
    await createStaleWatch(readBootId()).check(host, contact, signal);
    const result = afterExit(afterRepair(end.result, (mended ?? repaired)?.result), left?.result);
    const last = left?.result ?? result;
    publishStatus(host, { version: options.version, contact: contact.read(), last });
    const atStart = [...notices, ...(notLoaded === undefined ? [] : [notLoaded])];
    return { ...withoutAgent(result), warnings: [...atStart, ...result.warnings] };
  });
}

async function mendByDownload(host: Host, signal: AbortSignal): Promise<CycleEnd | undefined> {
  try {
    const look = await scrub(() => host, {
      cycle: newCycleId(),
      contents: 'digests',
      pace: unboundedPace(signal),
      repair: repairNow(host),
      download: 'yes',
      signal,
      exclusive: exclusiveAlone,
    });
    return look.repair;
  } catch (error) {
    // The cycle says what is wrong, and what is active still.
    if (!isWritError(error)) throw error;
    host.log.error({ err: error }, 'the policy on disk could not be looked over');
    return undefined;
  }
}

/** `writ verify` without an agent: without a repair it changes nothing but its note of the look. @throws WritError as pullAlone */
export async function verifyAlone(
  options: AloneOptions & { readonly repair: boolean },
): Promise<VerifyResult> {
  const { config } = loadConfig(options.configPath);
  const { by, signal, onEvent, version } = options;
  const repair = options.repair ? 'yes' : 'no';
  return underLock(config, options, 'verify', async (host) => {
    if (repair === 'yes') {
      await awaitWorkers(host, signal);
      const recovered = await recoverHost(host, { cycle: newCycleId(), signal });
      if (recovered !== undefined) createRecorder().record(host, recovered, {});
    }
    const how = { host: () => host, exclusive: exclusiveAlone };
    const result = await verifyPolicy({ ...how, repair, by, signal, onEvent });
    const last = result.repair === undefined ? {} : { last: result.repair };
    publishStatus(host, { version, contact: lastContact(host), ...last });
    return result;
  });
}

function lastContact(host: Host): AgentFacts['contact'] {
  return { contact: contactIn(readStatusFile(host.paths)) };
}

/** So that `writ status` knows when the server was last reached, and how it went. */
function publishStatus(
  host: Host,
  facts: Pick<AgentFacts, 'version' | 'contact'> & { readonly last?: CycleResult },
): void {
  const { last, mirrors } = readStatusFile(host.paths) ?? {};
  const report = statusReport(host, { ...facts, state: 'stop', problems: [] });
  writeStatusFile(host, {
    ...(mirrors === undefined || host.config.repository.length < 2 ? {} : { mirrors }),
    ...(last === undefined ? {} : { last }),
    ...report,
  });
}

/** `writ rollback` without an agent. @throws WritError as pullAlone */
export function rollbackAlone(
  options: AloneOptions & {
    readonly generation?: number;
    readonly reason?: string;
    readonly force?: boolean;
  },
): Promise<CycleResult> {
  return withHost(options, 'rollback', async (host) => {
    await awaitWorkers(host, options.signal);
    const end = await rollBack(host, options);
    const { by, reason } = options;
    createRecorder().record(host, end, { by, ...(reason === undefined ? {} : { reason }) });
    publishStatus(host, { version: options.version, contact: lastContact(host), last: end.result });
    return end.result;
  });
}

/** `writ resume` without an agent. @throws WritError as pullAlone */
export function resumeAlone(options: Omit<AloneOptions, 'onEvent'>): Promise<ResumeResult> {
  return withHost(options, 'resume', async (host) => {
    const result = orderResume(host, options.by);
    publishStatus(host, { version: options.version, contact: lastContact(host) });
    return result;
  });
}

/** `writ pause` without an agent. @throws WritError as pullAlone; USAGE */
export function pauseAlone(
  options: Omit<AloneOptions, 'onEvent'> & { readonly reason: string; readonly untilMs?: number },
): Promise<PauseResult> {
  return withHost(options, 'pause', async (host) => {
    const result = orderPause(host, options);
    publishStatus(host, { version: options.version, contact: lastContact(host) });
    return result;
  });
}

async function withHost<T>(
  options: Omit<AloneOptions, 'onEvent'>,
  holder: LockRequest['holder'],
  act: (host: Host, started: Started) => Promise<T>,
): Promise<T> {
  const { config } = loadConfig(options.configPath);
  const paths = hostPaths(config);
  const before = activeNow(paths);
  try {
    return await underLock(config, options, holder, async (host) => {
      const started = await startHost(host, { cycle: newCycleId(), signal: options.signal });
      if (started.recovered !== undefined) createRecorder().record(host, started.recovered, {});
      return act(host, started);
    });
  } catch (error) {
    const after = activeNow(paths);
    throw after === undefined || after !== before ? error : policyStands(error, after);
  }
}

/** @returns undefined when `current` cannot be read: then nothing is said of it */
function activeNow(paths: HostPaths): number | 'none' | undefined {
  try {
    return activeGenerationNumber(paths) ?? 'none';
  } catch (error) {
    if (isWritError(error)) return undefined;
    throw error;
  }
}

async function underLock<T>(
  config: AgentConfig,
  options: Omit<AloneOptions, 'onEvent'>,
  holder: LockRequest['holder'],
  act: (host: Host) => Promise<T>,
): Promise<T> {
  keepHeapSmall();
  const { signal, version } = options;
  const parts = { clock: systemClock, log: silentLog(), version };
  const lock = await lockHost(config, parts, { holder, waitMs: lockWaitMs, signal });
  try {
    const host = await openHost(config, parts);
    try {
      const result = await act(host);
      await createCollector().collectWhenDue(host);
      return result;
    } finally {
      await closeHost(host);
    }
  } finally {
    lock.release();
  }
}

// The commands of a host without a running agent: the same cycle, rollback and resume, under the same lock.
// Recovers first, as the agent does at its start.
import type { AgentConfig } from '../core/config.js';
import type { ResumeResult } from '../core/control-protocol.js';
import type { CycleEventLine, CycleResult } from '../core/cycle-report.js';
import { isWritError } from '../core/errors.js';
import { policyStands } from '../core/policy-stands.js';
import { readBootId } from '../platform/boot-id.js';
import { systemClock } from '../platform/clock.js';
import { keepHeapSmall } from '../platform/heap.js';
import { silentLog } from '../platform/log.js';
import { createCollector } from './collector.js';
import { contactIn, keepContact } from './freshness.js';
import { activeGenerationNumber } from './generations.js';
import type { Host } from './host.js';
import { createUntrustedExit } from './leave-untrusted.js';
import { loadConfig } from './load-config.js';
import { closeHost, type LockRequest, lockHost, openHost } from './open-host.js';
import { type HostPaths, hostPaths } from './paths.js';
import { createRecorder } from './record-cycle.js';
import { resume } from './resume.js';
import { newCycleId, runRollback, runSync } from './run-cycle.js';
import { createStaleWatch } from './stale-watch.js';
import { type Started, startHost } from './start-host.js';
import { readStatusFile, writeStatusFile } from './status-file.js';
import { type AgentFacts, statusReport } from './status-report.js';

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
  return withHost(options, 'pull', async (host, { notices, notLoaded }) => {
    const { by, signal, onEvent } = options;
    const end = await runSync(host, { trigger: options.force ? 'force' : 'pull', by, signal, onEvent });
    createRecorder().record(host, end, { by });
    const contact = keepContact(readStatusFile(host.paths), host.clock);
    contact.note(end.refresh);
    const left = await createUntrustedExit().afterCycle(host, end, signal);
    if (left !== undefined) createRecorder().record(host, left, { by: 'writ', reason: 'UNTRUSTED_ACTIVE' });
    await createStaleWatch(readBootId()).check(host, contact, signal);
    const last = left?.result ?? end.result;
    publishStatus(host, { version: options.version, contact: contact.read(), last });
    const atStart = [...notices, ...(notLoaded === undefined ? [] : [notLoaded])];
    return { ...end.result, warnings: [...atStart, ...end.result.warnings] };
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
    const end = await runRollback(host, options);
    const { by, reason } = options;
    createRecorder().record(host, end, { by, ...(reason === undefined ? {} : { reason }) });
    publishStatus(host, { version: options.version, contact: lastContact(host), last: end.result });
    return end.result;
  });
}

/** `writ resume` without an agent. @throws WritError as pullAlone */
export function resumeAlone(options: Omit<AloneOptions, 'onEvent'>): Promise<ResumeResult> {
  return withHost(options, 'resume', async (host) => {
    const result = resume(host);
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
    return await underLock(config, options, holder, act);
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
  act: (host: Host, started: Started) => Promise<T>,
): Promise<T> {
  keepHeapSmall();
  const { signal, version } = options;
  const parts = { clock: systemClock, log: silentLog(), version };
  const lock = await lockHost(config, parts, { holder, waitMs: lockWaitMs, signal });
  try {
    const host = await openHost(config, parts);
    try {
      const started = await startHost(host, { cycle: newCycleId(), signal });
      if (started.recovered !== undefined) createRecorder().record(host, started.recovered, {});
      const result = await act(host, started);
      await createCollector().collectWhenDue(host);
      return result;
    } finally {
      await closeHost(host);
    }
  } finally {
    lock.release();
  }
}

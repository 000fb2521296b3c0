// One process of the crash matrix: a standalone run from its lock to its last report, inside this process, with an observer,
// and with a worker that outlives it. Follows the order of src/agent/control/standalone-commands.ts.
import { createCollector } from '../../../src/agent/cycle/collector.js';
import { rollBack } from '../../../src/agent/cycle/rollback.js';
import { runSync } from '../../../src/agent/cycle/sync-cycle.js';
import { keepContact } from '../../../src/agent/freshness/contact-memory.js';
import type { CycleEnd } from '../../../src/agent/job/cycle-result.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { createRecorder } from '../../../src/agent/job/record.js';
import { readStatusFile, writeStatusFile } from '../../../src/agent/report/status-file.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { closeHost, lockHost, openHost } from '../../../src/agent/startup/open-host.js';
import { prepareHost } from '../../../src/agent/startup/prepare-host.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host, HostOptions } from '../../../src/agent/state/host.js';
import { hostPaths } from '../../../src/agent/state/paths.js';
import type { AgentConfig } from '../../../src/core/config/config.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { createDurableFs } from '../../../src/platform/disk/durable-fs.js';
import { silentLog } from '../../../src/platform/telemetry/silent-log.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import type { Answer } from '../../../src/workers/contract/driver.js';
import { confirms, refuses, type ScriptedDriver, scriptedDriver } from '../../kit/workers/scripted-driver.js';
import { type Watch, watch } from './matrix-faults.js';

/** `start` is the start of an agent, before its first cycle. */
export type Command = 'start' | 'pull' | 'rollback';

export interface MatrixHost {
  readonly config: AgentConfig;
  /** The worker of every bundle; it continues after the process dies. */
  readonly worker: ScriptedDriver;
}

export interface ProcessEnd {
  /** Absent when the process died or failed before its result. */
  readonly result?: CycleResult;
  /** The error that prevented a result. */
  readonly error?: unknown;
}

export type WorkerKind = 'confirms' | 'refuses' | 'refuses all but the first';

export function matrixWorker(kind: WorkerKind): ScriptedDriver {
  const no = refuses('the policy is too long');
  const answers: Record<WorkerKind, (generation: number) => Answer> = {
    confirms,
    refuses: no,
    // Generation 1 is the previous one, which a restore activates again.
    'refuses all but the first': (generation) => (generation === 1 ? confirms(generation) : no()),
  };
  return scriptedDriver({ a: answers[kind] });
}

/** Runs the command; discards the report of a dead process. */
export async function runProcess(host: MatrixHost, command: Command, observer: Watch): Promise<ProcessEnd> {
  try {
    const opened = await openMatrixHost(host, observer);
    try {
      const result = await perform(opened.host, command);
      return observer.isDead() || result === undefined ? {} : { result };
    } finally {
      await opened.close();
    }
  } catch (error) {
    return observer.isDead() ? {} : { error };
  }
}

async function perform(host: Host, command: Command): Promise<CycleResult | undefined> {
  const signal = new AbortController().signal;
  const { recovered } = await startHost(host, { cycle: newCycleId(), signal });
  if (recovered !== undefined) createRecorder().record(host, recovered, {});
  const end = command === 'start' ? recovered : await runCommand(host, command, signal);
  if (end !== recovered && end !== undefined) createRecorder().record(host, end, { by: 'test' });
  const { contact } = keepContact(readStatusFile(host.paths), host.clock).read();
  const last = end === undefined ? {} : { last: end.result };
  const facts = { version: 'test', contact: { contact }, state: 'stop' as const, problems: [], ...last };
  writeStatusFile(host, statusReport(host, facts));
  await createCollector().collectWhenDue(host);
  return end?.result;
}

function runCommand(host: Host, command: 'pull' | 'rollback', signal: AbortSignal): Promise<CycleEnd> {
  const common = { by: 'test', signal, onEvent: () => undefined };
  if (command === 'rollback') return rollBack(host, common);
  return runSync(host, { trigger: 'pull', ...common });
}

/** As lockHost and openHost, with the scripted worker in addition to the configured ones. */
async function openMatrixHost(
  host: MatrixHost,
  observer: Watch,
): Promise<{ host: Host; close(): Promise<void> }> {
  const options = optionsOf(observer);
  const lock = await lockHost(host.config, options, { holder: 'pull', waitMs: 0 });
  try {
    const opened = await openHost(host.config, options, lock);
    const close = async (): Promise<void> => {
      try {
        // As at the end of a standalone run.
        opened.stateMark?.renew();
      } finally {
        // Also after a kill, because its sockets would still listen in this process.
        await closeHost(opened);
        lock.release();
      }
    };
    return { host: withWorker(opened, host, observer), close };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Opens the host for the next process, without faults. Without the lock, because it costs a program and no other
 * process runs.
 */
export async function reopenMatrixHost(host: MatrixHost): Promise<Host> {
  const observer = watch();
  prepareHost(hostPaths(host.config), createDurableFs());
  return withWorker(await openHost(host.config, optionsOf(observer)), host, observer);
}

function optionsOf(observer: Watch): HostOptions {
  return { clock: systemClock, log: silentLog(), version: 'test', observer };
}

function withWorker(host: Host, { config, worker }: MatrixHost, observer: Watch): Host {
  const driver: ScriptedDriver = {
    ...worker,
    reset: (name, notified) => {
      observer.requireAlive();
      return worker.reset(name, notified);
    },
  };
  const uses = config.bundles.map((one) => one.name);
  const reset = { driver: 'scripted', options: {}, timeoutMs: 1000, min: 0 };
  const group = { name: 'scripted', uses, when: [], confirm: 'warn', reset } as const;
  const { durable } = host;
  return {
    ...host,
    // The disk is in memory: a cheap flush replaces the program, under the same label at the same moment.
    durable: { ...durable, flushTree: async (op, path) => durable.flushDirectory(op, path) },
    groups: [...host.groups, { config: group, driver }],
  };
}

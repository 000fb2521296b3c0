// Runs a host and logs each visible action in order: requests to the server, commands, the link, notifications, status, history
// and the exit code. A step can be made to fail, or the process to be killed in it.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { runSync } from '../../../src/agent/cycle/sync-cycle.js';
import { newCycleId } from '../../../src/agent/job/progress.js';
import { createRecorder } from '../../../src/agent/job/record.js';
import { writeStatusFile } from '../../../src/agent/report/status-file.js';
import { statusReport } from '../../../src/agent/report/status-report.js';
import { startHost } from '../../../src/agent/startup/start-host.js';
import type { Host } from '../../../src/agent/state/host.js';
import type { CycleEventLine } from '../../../src/core/cycle/cycle-report.js';
import { digestFromHex } from '../../../src/core/names.js';
import { type ActionLog, Killed, openActionLog, strike, type Trouble } from '../assert/step-story.js';
import { tempDir } from '../disk/temp-dir.js';
import { type TestHost, testHost } from './test-host.js';
import { hostOptions } from './troubled-host.js';

/** Actions of the process run with the trouble, of the next start, and of the cycle after it. */
export interface VisibleActions {
  readonly interrupted: string;
  readonly restart: string;
  readonly next: string;
}

/** Activates release 5 as generation 1, meets the trouble with release 6, restarts, and pulls once more. */
export async function visibleActions(trouble: Trouble): Promise<VisibleActions> {
  using dir = tempDir();
  const script = dir.join('exit-codes');
  const dead = new Set<string>();
  const log = openActionLog(dir.join('actions'));
  fs.mkdirSync(script);
  using test = testHost(hostOptions({ log, script, dead }, trouble, 'not yet'));
  await publish(test, 5);
  await pull(test.host, log);
  await publish(test, 6, trouble.release);
  for (const [name, code] of Object.entries(trouble.exitCodes ?? {})) {
    fs.writeFileSync(join(script, name), `${code} ${trouble.isAlways === true ? 'yes' : 'no'}\n`);
  }
  log.take();
  const first = openActionLog(log.path);
  const host = test.reopen(hostOptions({ log: first, script, dead }, trouble, 'now'));
  await runUntilKilled(host, first, trouble);
  const interrupted = first.take();

  const second = openActionLog(log.path);
  // Faults of the server and of the disk are over; those of the release remain.
  const healed = { isRefusing: trouble.isRefusing, workers: trouble.workers } as Trouble;
  const again = test.reopen(hostOptions({ log: second, script, dead }, healed, 'now'));
  await start(again, second);
  const restart = second.take();
  await pull(again, second);
  return { interrupted, restart, next: second.take() };
}

async function publish(test: TestHost, serial: number, wrong?: Trouble['release']): Promise<void> {
  const info = wrong === 'an older serial' ? { serial: serial - 2 } : { serial };
  const digest = digestFromHex('0'.repeat(64));
  if (digest === undefined) throw new Error('this is a digest');
  const manifest = { digest, length: 100 };
  await test.publish(
    'access',
    { 'policy.yaml': `version: ${serial}\n` },
    { ...info, ...(wrong === 'another manifest' ? { manifest } : {}) },
  );
}

async function runUntilKilled(host: Host, log: ActionLog, trouble: Trouble): Promise<void> {
  try {
    await start(host, log);
    await pull(host, log, trouble);
  } catch (error) {
    if (!(error instanceof Killed)) throw error;
  }
}

async function start(host: Host, log: ActionLog): Promise<void> {
  const { recovered } = await startHost(host, { cycle: newCycleId(), signal: new AbortController().signal });
  log.requireAlive();
  if (recovered === undefined) return;
  log.write(`recovered ${recovered.result.outcome}`);
  createRecorder().record(host, recovered, {});
}

async function pull(host: Host, log: ActionLog, trouble: Trouble = {}): Promise<void> {
  const onEvent = (event: CycleEventLine): void => {
    if (event.type === 'step.started') strike(log, trouble, `begin ${event.step}`);
  };
  const signal = new AbortController().signal;
  const end = await runSync(host, { trigger: 'pull', by: 'test', signal, onEvent });
  log.requireAlive();
  createRecorder().record(host, end, { by: 'test' });
  const facts = { version: 'test', state: 'stop', contact: { contact: {} }, problems: [] } as const;
  writeStatusFile(host, statusReport(host, { ...facts, last: end.result }));
  const { problems, exitCode } = end.result;
  log.write(problems[0] === undefined ? `exit ${exitCode}` : `exit ${exitCode} ${problems[0].code}`);
}

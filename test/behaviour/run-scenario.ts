// Runs one script with the program of one checkout, in its own directory, and waits for its end. Owns the environment of a
// scenario; ends every process of it. recording.ts reads the recordings.
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import type { Checkout } from './checkout.js';
import type { Form } from './scenarios.js';
import { library } from './scenarios.js';

export interface ScenarioRun {
  readonly script: string;
  readonly form: Form;
  readonly checkout: Checkout;
  /** The working directory: the same path for both checkouts. */
  readonly directory: string;
  /** The directory for its recordings, outside the working directory. */
  readonly records: string;
  /** Epoch milliseconds at its first command. */
  readonly startMs: number;
  readonly ports: readonly number[];
  /** Ends the scenario and all its processes. */
  readonly signal: AbortSignal;
}

/** Far above the duration of a scenario, because slowness on a busy machine is no difference. */
const deadlineMs = 600_000;

/** @returns `ended`, or the failure of the scenario itself */
export async function runScenario(scenarioRun: ScenarioRun): Promise<string> {
  mkdirSync(scenarioRun.directory, { recursive: true });
  mkdirSync(scenarioRun.records, { recursive: true });
  const child = spawn('bash', ['--norc', '-c', '. "$LIBRARY"; . "$0"; exit 0', scenarioRun.script], {
    cwd: scenarioRun.directory,
    env: environmentOf(scenarioRun),
    stdio: ['ignore', 'ignore', 'pipe'],
    // A process group, so that all processes of the scenario can be ended.
    detached: true,
  });
  let stderrTail = '';
  child.stderr.on('data', (chunk: Buffer) => {
    stderrTail = `${stderrTail}${chunk.toString()}`.slice(-2000);
  });
  const abort = (): void => endGroup(child.pid);
  scenarioRun.signal.addEventListener('abort', abort, { once: true });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    endGroup(child.pid);
  }, deadlineMs);
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  clearTimeout(timer);
  scenarioRun.signal.removeEventListener('abort', abort);
  endGroup(child.pid);
  if (late) return `did not end within ${deadlineMs / 1000} s: ${stderrTail}`;
  return code === 0 ? 'ended' : `ended with ${code}: ${stderrTail}`;
}

function environmentOf({
  checkout,
  form,
  directory,
  records,
  startMs,
  ports,
}: ScenarioRun): NodeJS.ProcessEnv {
  return {
    PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
    HOME: directory,
    LANG: 'C.UTF-8',
    TZ: 'UTC',
    NODE: process.execPath,
    LIBRARY: library,
    TOOLS: import.meta.dirname,
    CHECKOUT: checkout.directory,
    PROGRAM: checkout.program,
    SDK: checkout.sdk,
    DEMO: checkout.demo,
    FORM: form,
    W: directory,
    RECORDS: records,
    START_MS: String(startMs),
    ...Object.fromEntries(ports.map((port, index) => [`PORT${index + 1}`, String(port)])),
  };
}

function endGroup(leader: number | undefined): void {
  if (leader === undefined) return;
  try {
    process.kill(-leader, 'SIGKILL');
  } catch {
    // No process is left.
  }
}

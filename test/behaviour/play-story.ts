// Plays one script with the program of one checkout, in a directory of its own, and waits for its end. Owns the
// environment that a story sees; ends every process of it. What the script recorded is read by recording.ts.
import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import type { Checkout } from './checkout.js';
import type { Form } from './stories.js';
import { library } from './stories.js';

export interface Play {
  readonly script: string;
  readonly form: Form;
  readonly checkout: Checkout;
  /** Where the story happens; the same path for both checkouts. */
  readonly directory: string;
  /** Where its recordings go, outside of that. */
  readonly records: string;
  /** Epoch milliseconds at its first command. */
  readonly startMs: number;
  readonly ports: readonly number[];
  /** Ends the story and all that it started. */
  readonly signal: AbortSignal;
}

/** Far above what a story takes: on a busy machine slowness is no difference. */
const deadlineMs = 600_000;

/** @returns how it ended: `ended`, or what is wrong with the story itself */
export async function playStory(play: Play): Promise<string> {
  mkdirSync(play.directory, { recursive: true });
  mkdirSync(play.records, { recursive: true });
  const child = spawn('bash', ['--norc', '-c', '. "$LIBRARY"; . "$0"; exit 0', play.script], {
    cwd: play.directory,
    env: environmentOf(play),
    stdio: ['ignore', 'ignore', 'pipe'],
    // A group of its own, so that it can be ended with all that it started.
    detached: true,
  });
  let said = '';
  child.stderr.on('data', (chunk: Buffer) => {
    said = `${said}${chunk.toString()}`.slice(-2000);
  });
  const abort = (): void => endGroup(child.pid);
  play.signal.addEventListener('abort', abort, { once: true });
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    endGroup(child.pid);
  }, deadlineMs);
  const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
  clearTimeout(timer);
  play.signal.removeEventListener('abort', abort);
  endGroup(child.pid);
  if (late) return `did not end within ${deadlineMs / 1000} s: ${said}`;
  return code === 0 ? 'ended' : `ended with ${code}: ${said}`;
}

function environmentOf({ checkout, form, directory, records, startMs, ports }: Play): NodeJS.ProcessEnv {
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
    // Nothing of it is left.
  }
}

// Runs one cycle of the real program on its own host, as a standalone run or by a running agent; under strace when a call is
// to be recorded, killed or failed. Checks no result.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { askAgent } from '../../../src/platform/net/control-client.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { runWritProcess, startWrit } from '../../kit/cli/writ-process.js';
import type { KillCase, Place } from './kill-scenes.js';

export interface CycleRun {
  readonly exitCode: number | null;
  /** The outcome of the cycle; undefined when it had none. */
  readonly outcome: string | undefined;
  readonly output: string;
  /** The trace of strace; empty without it. */
  readonly trace: string;
}

/** A run beyond this limit hangs, and is killed. */
const limit = ['timeout', '-k', '5', '60'];

/**
 * A PID namespace, as in a container: the search for generation users opens files of every process, so the count of
 * calls would differ from run to run. Only root may create one; other users strike less exactly.
 */
const namespace =
  process.getuid?.() === 0 ? ['unshare', '-m', '-p', '-f', '--mount-proc', '--kill-child'] : [];

/** @param tracing options of strace; the program runs untraced without them */
export function runCycle(
  place: Place,
  { by, argv }: { readonly by: KillCase['by']; readonly argv: readonly string[] },
  tracing?: readonly string[],
): Promise<CycleRun> {
  const tracePath = join(place.root, 'trace');
  const strace = tracing === undefined ? [] : [...namespace, 'strace', '-y', '-o', tracePath, ...tracing];
  return by === 'command'
    ? runCommand(place, argv, { strace, tracePath })
    : runAgent(place, { strace, tracePath });
}

interface Tracing {
  readonly strace: readonly string[];
  readonly tracePath: string;
}

async function runCommand(
  place: Place,
  argv: readonly string[],
  { strace, tracePath }: Tracing,
): Promise<CycleRun> {
  const options = { under: [...limit, ...strace], cwd: '/' };
  const run = await runWritProcess([...argv, '--json', '--config', place.configPath], options);
  const output = `${run.stdout}${run.stderr}`;
  return { exitCode: run.exitCode, outcome: outcomeIn(run.stdout), output, trace: readTrace(tracePath) };
}

/** Starts the agent, requests a cycle once it listens, and ends it as systemd does. */
async function runAgent(place: Place, { strace, tracePath }: Tracing): Promise<CycleRun> {
  await using agent = startWrit(['agent', '--config', place.configPath], {}, { under: strace });
  const asked = agent.waitForStderr(/control socket open/).then(() => askForCycle(place));
  const outcome = await asked.catch(() => undefined);
  stop(agent.child.pid, strace.length > 0);
  const run = await agent.ended;
  const output = `${run.stdout}${run.stderr}`;
  return { exitCode: run.exitCode, outcome, output, trace: readTrace(tracePath) };
}

async function askForCycle(place: Place): Promise<string> {
  const answers = askAgent({
    socketPath: place.paths.socket,
    state: place.paths.state,
    request: { type: 'pull', force: false, by: 'test' },
    version: 'test',
    clock: systemClock,
    silenceMs: 30_000,
    commandLine: 'writ pull',
    onOtherVersion: () => undefined,
    signal: new AbortController().signal,
  });
  for await (const answer of answers) if (answer.type === 'pull.result') return answer.outcome;
  throw new Error('the agent gave no result');
}

/** Signals the program itself, because a signal to strace does not reach it. */
function stop(pid: number | undefined, isTraced: boolean): void {
  if (pid === undefined) return;
  const depth = isTraced ? (namespace.length > 0 ? 2 : 1) : 0;
  try {
    process.kill(descendant(pid, depth), 'SIGTERM');
  } catch {
    // It has ended already.
  }
}

function descendant(pid: number, depth: number): number {
  if (depth === 0) return pid;
  const [child = ''] = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  if (child === '') throw new Error(`${pid} has no child any more`);
  return descendant(Number(child), depth - 1);
}

function outcomeIn(stdout: string): string | undefined {
  return /"outcome":"([a-z-]+)"/.exec(stdout)?.[1];
}

function readTrace(path: string): string {
  return fs.existsSync(path) ? fs.readFileSync(path, 'latin1') : '';
}

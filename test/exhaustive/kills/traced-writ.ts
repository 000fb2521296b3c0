// Runs one cycle of the real program, alone or by a running agent, on a host of its own; under strace when a call is to
// be recorded, killed or failed. Judges nothing.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { askAgent } from '../../../src/platform/net/control-client.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { runWritProcess, startWrit } from '../../kit/cli/writ-process.js';
import type { KillCase, Place } from './kill-scenes.js';

export interface CycleRun {
  readonly exitCode: number | null;
  /** What the cycle answered; undefined when it did not get so far. */
  readonly outcome: string | undefined;
  readonly said: string;
  /** Of strace; empty without it. */
  readonly trace: string;
}

/** Nothing here takes longer on any machine; what does is a hang, and killed. */
const limit = ['timeout', '-k', '5', '60'];

/**
 * Processes of its own, as in a container: the search for holders opens files of every process, and the count of calls
 * would differ from run to run. Only root may; others strike a little less exactly.
 */
const alone = process.getuid?.() === 0 ? ['unshare', '-m', '-p', '-f', '--mount-proc', '--kill-child'] : [];

/** @param tracing options of strace; without them the program runs as it is */
export function runCycle(
  place: Place,
  { by, argv }: { readonly by: KillCase['by']; readonly argv: readonly string[] },
  tracing?: readonly string[],
): Promise<CycleRun> {
  const tracePath = join(place.root, 'trace');
  const strace = tracing === undefined ? [] : [...alone, 'strace', '-y', '-o', tracePath, ...tracing];
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
  const said = `${run.stdout}${run.stderr}`;
  return { exitCode: run.exitCode, outcome: outcomeIn(run.stdout), said, trace: readTrace(tracePath) };
}

/** Starts the agent, asks it for a cycle when it listens, and ends it as systemd does. */
async function runAgent(place: Place, { strace, tracePath }: Tracing): Promise<CycleRun> {
  await using agent = startWrit(['agent', '--config', place.configPath], {}, { under: strace });
  const asked = agent.waitForStderr(/control socket open/).then(() => askForCycle(place));
  const outcome = await asked.catch(() => undefined);
  stop(agent.child.pid, strace.length > 0);
  const run = await agent.ended;
  const said = `${run.stdout}${run.stderr}`;
  return { exitCode: run.exitCode, outcome, said, trace: readTrace(tracePath) };
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

/** What is sent to strace does not reach the program, so the program is told itself. */
function stop(pid: number | undefined, isTraced: boolean): void {
  if (pid === undefined) return;
  const depth = isTraced ? (alone.length > 0 ? 2 : 1) : 0;
  try {
    process.kill(descendant(pid, depth), 'SIGTERM');
  } catch {
    // It has ended already, which is what was wanted.
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

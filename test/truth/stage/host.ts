// A host of one case: its repository, its configuration and its commands. A command that changes the policy is the compiled
// program in its own process. Publishing and queries call the same command line in this process, which saves a third of a
// cell's time. Reads all responses in one function, so that a renamed member costs one line.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseDocument } from 'yaml';
import { quietPolls } from '../../kit/agent/quiet-polls.js';
import { jsonOf, runWrit, type WritRun } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import type { Tree } from '../parts/daemon.js';
import { type Pace, probeDeadline } from '../rules/pace.js';

/** What all commands of Writ report. */
export interface Answers {
  readonly exitCode: number | null;
  readonly outcome: string;
  readonly confirmed: boolean;
  /** Codes of the findings of `writ health`. */
  readonly findings: readonly string[];
  readonly active: string | undefined;
  /** Whether the last published release is refused or deferred. */
  readonly refused: boolean;
  /** The last response of the worker or its tool. */
  readonly tool: string;
}

/** What may refuse a release besides the daemon: checks before the swap, the probe after it. */
export type Judge = 'checks' | 'probe';

export interface HostOptions {
  readonly dir: string;
  /** A directory with `repo` and `keys` to copy. */
  readonly stock: string;
  /** `bundles` and `workers` as YAML. */
  readonly agent: string;
  readonly without: readonly Judge[];
  /** The intervals of the agent. */
  readonly pace: Pace;
  readonly under?: readonly string[];
}

export interface AskOptions {
  /** Called when the command begins to notify workers. */
  readonly onReset?: () => void;
}

export interface TruthHost {
  /** @param stamps files of the tree with a placeholder */
  publish(version: string, tree: Tree, stamps?: readonly string[]): Promise<void>;
  /** Runs one command that may change the policy, then queries status and health. */
  ask(command: 'pull' | 'rollback', options?: AskOptions): Promise<Answers>;
  /** Starts `writ agent`; disposing of it ends the agent. */
  agent(): Promise<AsyncDisposable>;
  /** Queries status and health only. */
  query(): Promise<Answers>;
}

/** @returns the directory of a repository without a release, created by `writ init` */
export async function makeStock(dir: string): Promise<string> {
  mkdirSync(dir, { recursive: true });
  const [repository, keys] = [join(dir, 'repo'), join(dir, 'keys')];
  await called(['init', '--repository', repository, '--keys', keys, '--no-passphrase']);
  return dir;
}

const quickAgent = join(import.meta.dirname, 'quick-agent.js');

export function truthHost({ dir, stock, agent, without, pace, under = [] }: HostOptions): TruthHost {
  cpSync(stock, dir, { recursive: true });
  const [repository, keys, config] = [join(dir, 'repo'), join(dir, 'keys'), join(dir, 'agent.json')];
  const own = parseDocument(agent).toJS() as {
    bundles: { name: string }[];
    workers: { probe?: { deadline?: string } }[];
  };
  for (const part of [...own.bundles, ...own.workers])
    for (const name of without) Reflect.deleteProperty(part, name);
  for (const { probe } of own.workers) if (probe !== undefined) probe.deadline ??= probeDeadline(pace);
  const places = { state: join(dir, 'state'), run: join(dir, 'run') };
  mkdirSync(places.run);
  const where = {
    repository: pathToFileURL(repository).href,
    root: join(repository, 'metadata/1.root.json'),
  };
  writeFileSync(config, JSON.stringify({ ...where, ...places, ...quietPolls('truth'), ...own }));
  const bundle = own.bundles[0]?.name ?? '';
  let last = 0;
  const query = async (moved: Run): Promise<Answers> => {
    const status = await called(['status', '--config', config]);
    const health = await called(['health', '--config', config]);
    return read({ moved, status: status.response, health: health.response, last });
  };
  return {
    publish: async (version, tree, stamps = []) => {
      const source = writeTree(join(dir, 'published', version), tree);
      const to = ['--repository', repository, '--keys', keys, '--bundle', bundle, '--revision', version];
      const stamped = stamps.flatMap((path) => ['--stamp', path]);
      const { exitCode, response } = await called(['publish', source, ...to, ...stamped, '--accept-change']);
      if (exitCode !== 0) throw new Error(`publish: ${JSON.stringify(response)}`);
      last = Number(response['serial']);
    },
    ask: async (command, { onReset } = {}) => {
      await using writ = startWrit([command, '--config', config, '--json', '-v'], {}, { under });
      // The command may end without notifying any worker.
      writ.waitForStderr(/\treset\tbegin/).then(onReset, () => undefined);
      return query(runOf(command, await writ.ended));
    },
    agent: async () => {
      const entry = pace === 'quick' ? { entry: quickAgent } : {};
      const agent = startWrit(['agent', '--config', config], {}, { under, ...entry });
      const end = (): void => void agent.child.kill('SIGKILL');
      process.once('exit', end);
      agent.child.once('exit', () => process.removeListener('exit', end));
      await agent.waitForStderr(/"state":"run"/);
      return agent;
    },
    query: () => query({ exitCode: 0, response: { outcome: 'asked' } }),
  };
}

interface Run {
  readonly exitCode: number | null;
  readonly response: Readonly<Record<string, unknown>>;
}

async function called(args: readonly string[]): Promise<Run> {
  return runOf(args[0] ?? '', await runWrit([...args, '--json']));
}

function runOf(command: string, run: WritRun): Run {
  try {
    return { exitCode: run.exitCode, response: jsonOf(run) };
  } catch {
    throw new Error(`writ ${command} ended with ${run.exitCode}: ${run.stdout}${run.stderr}`);
  }
}

interface Worker {
  readonly text?: string;
}

/** Outcomes of a pull after which the offered release is not in use. */
const notTaken = ['rejected', 'rolled-back', 'blocked', 'deferred'];

/** Reads the members of all responses. */
function read({
  moved,
  status,
  health,
  last,
}: {
  moved: Run;
  status: Run['response'];
  health: Run['response'];
  last: number;
}): Answers {
  const list = <T>(from: Run['response'], name: string): readonly T[] =>
    (from[name] as T[] | undefined) ?? [];
  const outcome = String(moved.response['outcome']);
  const refusals = list<{ serial: number }>(status, 'refusals');
  const active = list<{ revision?: string }>(status, 'bundles')[0]?.revision;
  const workers = [...list<Worker>(moved.response, 'workers'), ...list<Worker>(status, 'workers')];
  const problems = list<{ message: string }>(moved.response, 'problems').map(({ message }) => message);
  return {
    exitCode: moved.exitCode,
    outcome,
    confirmed: status['confirmed'] === true,
    findings: list<{ code: string }>(health, 'findings').map(({ code }) => code),
    active,
    refused: refusals.some(({ serial }) => serial === last) || notTaken.includes(outcome),
    tool: workers.find(({ text }) => text)?.text ?? problems[0] ?? '',
  };
}

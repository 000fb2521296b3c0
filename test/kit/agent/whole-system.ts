// The complete Writ: keys, a repository, a server and an agent on loopback in one temporary directory, each a process of the
// compiled program. The test has the workers and the assertions.
import { mkdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { until } from '../assert/until.js';
import { jsonOf, type WritRun } from '../cli/run-writ.js';
import { runWritProcess, startWrit, type WritProcess } from '../cli/writ-process.js';
import type { TempDir } from '../disk/temp-dir.js';
import { writeTree } from '../disk/write-tree.js';
import { quietPolls } from './quiet-polls.js';

/** The result of a command with --json. */
export interface Notified {
  readonly exitCode: number | null;
  readonly json: Readonly<Record<string, unknown>>;
  /** The steps as text. */
  readonly stderr: string;
}

export interface WholeSystemOptions {
  /** Members of agent.yaml besides repository, root and directories; JSON is YAML. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The shortest interval, 1 s, by default. With `1h` only the poll at the start happens during a test. */
  readonly pollEvery?: string;
}

export interface PublishOptions {
  /** Default: the first bundle of the configuration. */
  readonly bundle?: string;
  readonly revision?: string;
}

export interface PollOptions {
  /** Earliest begin of the poll in epoch milliseconds; now by default. */
  readonly sinceMs?: number;
  /** True: the first poll with an outcome other than `unchanged`. */
  readonly hasChange?: boolean;
}

export interface WholeSystem extends AsyncDisposable {
  /** Path of agent.yaml. */
  readonly config: string;
  readonly state: string;
  readonly policy: string;
  /** Directory of the agent's sockets and of status.json. */
  readonly run: string;
  readonly server: WritProcess;
  /** @returns the running agent; throws Error if none was started */
  agent(): WritProcess;
  /** Publishes a directory, or these files (see writeTree). */
  publish(
    source: string | Readonly<Record<string, string | Uint8Array>>,
    options?: PublishOptions,
  ): Promise<Notified>;
  startAgent(): Promise<void>;
  /** Sends SIGTERM and waits for the exit. */
  stopAgent(): Promise<WritRun>;
  /** Changes the poll interval and reloads the agent. */
  pollEvery(interval: string): Promise<void>;
  pull(...flags: string[]): Promise<Notified>;
  rollback(...args: string[]): Promise<Notified>;
  status(): Promise<Readonly<Record<string, unknown>>>;
  /** @returns the target of `current`, as `generations/2`; undefined without a policy */
  current(): string | undefined;
  /** @returns the result of a poll that began after this call, when it has ended */
  nextPoll(options?: PollOptions): Promise<Readonly<Record<string, unknown>>>;
  stop(): Promise<void>;
}

const keysWithoutPassphrase = '--no-passphrase';

/** Makes keys and a repository and starts the server. The test starts the agent. @throws Error if a command fails */
export async function wholeSystem(dir: TempDir, options: WholeSystemOptions): Promise<WholeSystem> {
  const [repository, keys] = [dir.join('repo'), dir.join('keys')];
  const places = { state: dir.join('state'), policy: dir.join('state/policy'), run: dir.join('run') };
  mkdirSync(places.run);
  const config = dir.join('agent.yaml');
  await succeed(['init', '--repository', repository, '--keys', keys, keysWithoutPassphrase]);
  const server = startWrit(['serve', '--repository', repository, '--listen', '127.0.0.1:0']);
  const [, url] = await server.waitForStdout(/LISTENING (\S+)/);
  const file = {
    repository: `${url}/`,
    root: `${repository}/metadata/1.root.json`,
    state: places.state,
    run: places.run,
    socket: `${places.run}/agent.sock`,
    host: quietPolls('whole-system').host,
    sandbox: 'off',
    ...options.config,
  };
  const configure = (every: string): void =>
    writeFileSync(config, JSON.stringify({ ...file, poll: { every } }, undefined, 2));
  configure(options.pollEvery ?? '1s');
  let agent: WritProcess | undefined;
  let sources = 0;
  const running = (): WritProcess => {
    if (agent === undefined) throw new Error('no agent was started');
    return agent;
  };
  const stop = async (): Promise<void> => {
    await agent?.[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  };
  return {
    config,
    ...places,
    server,
    agent: running,
    publish: (source, { bundle = firstBundle(options), revision } = {}) => {
      sources += 1;
      const tree = typeof source === 'string' ? source : writeTree(dir.join(`published-${sources}`), source);
      const where = ['--repository', repository, '--keys', keys, '--bundle', bundle];
      // Accepts each change: the bounds of changes have their own tests.
      const what = ['--revision', revision ?? `r${sources}`, '--accept-change'];
      return succeed(['publish', tree, ...where, ...what]);
    },
    startAgent: async () => {
      agent = startWrit(['agent', '--config', config]);
      await agent.waitForStderr(/"state":"run"/);
    },
    stopAgent: () => {
      running().child.kill('SIGTERM');
      return running().ended;
    },
    pollEvery: async (interval) => {
      const before = cyclesOf(running(), 'reload').length;
      configure(interval);
      running().child.kill('SIGHUP');
      await until(() => cyclesOf(running(), 'reload').length > before);
    },
    pull: (...flags) => ask(['pull', '--config', config, ...flags]),
    rollback: (...args) => ask(['rollback', ...args, '--config', config]),
    status: async () => (await succeed(['status', '--config', config])).json,
    current: () => linkOf(`${places.policy}/current`),
    nextPoll: (wanted = {}) => nextPoll(running(), wanted),
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

async function ask(args: readonly string[]): Promise<Notified> {
  const run = await runWritProcess([...args, '--json']);
  return { exitCode: run.exitCode, json: jsonOf(run), stderr: run.stderr };
}

async function succeed(args: readonly string[]): Promise<Notified> {
  const notified = await ask(args);
  if (notified.exitCode !== 0) {
    throw new Error(
      `writ ${args[0]} ended with ${notified.exitCode}: ${JSON.stringify(notified.json)}${notified.stderr}`,
    );
  }
  return notified;
}

function firstBundle({ config }: WholeSystemOptions): string {
  const [bundle] = config['bundles'] as readonly { readonly name: string }[];
  return bundle?.name ?? '';
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    return undefined;
  }
}

/** @returns the results of the cycles with this trigger, from the agent's log */
function cyclesOf(agent: WritProcess, trigger: 'poll' | 'reload'): Record<string, unknown>[] {
  const lines = agent.stderr().split('\n').slice(0, -1);
  return lines
    .filter((line) => line.includes('"cycle ended"'))
    .map((line) => (JSON.parse(line) as { result: Record<string, unknown> }).result)
    .filter((result) => result['trigger'] === trigger);
}

async function nextPoll(agent: WritProcess, wanted: PollOptions): Promise<Record<string, unknown>> {
  const { sinceMs = Date.now(), hasChange = false } = wanted;
  const after = (): Record<string, unknown> | undefined =>
    cyclesOf(agent, 'poll').find(
      (result) =>
        Number(result['startedAtMs']) >= sinceMs && (!hasChange || result['outcome'] !== 'unchanged'),
    );
  await until(() => after() !== undefined);
  return after() ?? {};
}

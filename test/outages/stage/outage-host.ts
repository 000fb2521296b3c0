// One host as a user has it, below one temporary directory: keys, a repository, `writ serve`, a configuration in YAML, and `writ agent`.
// Each is the shipped program in a process of its own. Owns their start and end; workers belong to the rows.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { runWritProcess, startWrit, type WritProcess } from '../../kit/cli/writ-process.js';
import type { ReplayOptions } from './outage.js';
import { type Watch, watchWorkers } from './watch-workers.js';

/** A file of a bundle by its path. */
export type BundleFiles = Readonly<Record<string, string>>;

export interface HostOptions {
  readonly bundle: string;
  /** The sections `bundles` and `workers` of agent.yaml, as a user writes them. */
  readonly yaml: string;
  /** A command line before `writ serve` and before `writ agent`, as `nsenter` of a network namespace. */
  readonly underServer?: readonly string[];
  readonly underAgent?: readonly string[];
  /** HOST:PORT of the server. */
  readonly listen?: string;
}

export interface OutageHost extends AsyncDisposable {
  readonly repository: string;
  /** The policy that workers read: `current` below the state directory. */
  readonly current: string;
  readonly run: string;
  readonly config: string;
  /** Runs a command of the publisher with the flags of repository and keys. @returns its exit code and its output */
  publisher(...args: readonly string[]): Promise<{ readonly exitCode: number | null; readonly text: string }>;
  /** Publishes files as the next serial. @throws Error unless `writ publish` exits with 0 */
  publish(files: BundleFiles, ...flags: readonly string[]): Promise<void>;
  /** Writes files for a publish. @returns their directory */
  source(files: BundleFiles): string;
  /** Runs `writ pull --force`, as an operator does. */
  pullForced(): Promise<void>;
  startAgent(): Promise<void>;
  status(): Promise<Readonly<Record<string, unknown>>>;
  /** The output of `writ history --json`. */
  history(): Promise<Readonly<Record<string, unknown>>>;
  watch(sockets: readonly string[]): Promise<Watch>;
  /** Waits until a first policy is active. @throws Error after a minute */
  untilActive(): Promise<void>;
  /** Waits until the active release has settled. @throws Error after three minutes */
  untilSettled(): Promise<void>;
  /** Waits, at most `forMs`. @returns whether the condition became true */
  waits(forMs: number, condition: () => boolean | Promise<boolean>): Promise<boolean>;
}

/** Creates the host and starts the server. The row starts the agent. */
export async function outageHost(
  { dir }: ReplayOptions,
  { bundle, yaml, underServer = [], underAgent = [], listen = '127.0.0.1:0' }: HostOptions,
): Promise<OutageHost> {
  const [repository, keys, state, run] = ['repo', 'keys', 'state', 'run'].map((one) => dir.join(one)) as [
    string,
    string,
    string,
    string,
  ];
  mkdirSync(run);
  const owner = ['--repository', repository, '--keys', keys] as const;
  await succeed('init', ...owner, '--no-passphrase');
  const server = startWrit(
    ['serve', '--repository', repository, '--listen', listen],
    {},
    { under: underServer },
  );
  const [, url] = await server.waitForStdout(/LISTENING (\S+)/);
  const config = dir.join('agent.yaml');
  writeFileSync(config, configText({ url: url ?? '', repository, state, run, yaml }));
  let agent: WritProcess | undefined;
  let sources = 0;
  const source = (files: BundleFiles): string => {
    sources += 1;
    const top = dir.join(`source-${sources}`);
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(`${top}/${path}`), { recursive: true });
      writeFileSync(`${top}/${path}`, text);
    }
    mkdirSync(top, { recursive: true });
    return top;
  };
  const publisher: OutageHost['publisher'] = async (command = '', ...args) => {
    const { exitCode, stdout, stderr } = await runWritProcess([command, ...args, ...owner]);
    return { exitCode, text: `${stdout}${stderr}`.trim() };
  };
  const status = async () => jsonOf(await runWritProcess(['status', '--config', config, '--json']));
  const history = async () => jsonOf(await runWritProcess(['history', '--config', config, '--json']));
  const waits: OutageHost['waits'] = async (forMs, condition) => {
    for (const endMs = performance.now() + forMs; performance.now() < endMs; await setTimeout(200))
      if (await condition()) return true;
    return false;
  };
  return {
    ...{ repository, run, config, publisher, source, status, waits },
    current: `${state}/policy/current`,
    publish: async (files, ...flags) => {
      const { exitCode, text } = await publisher('publish', source(files), '--bundle', bundle, ...flags);
      if (exitCode !== 0) throw new Error(`writ publish exited with ${exitCode}: ${text}`);
    },
    pullForced: async () => void (await runWritProcess(['pull', '--force', '--config', config])),
    startAgent: async () => {
      agent = startWrit(['agent', '--config', config], {}, { under: underAgent });
      await agent.waitForStderr(/"state":"run"/);
    },
    history,
    watch: (sockets) => watchWorkers(sockets, `${state}/policy/current`),
    untilActive: async () => {
      if (!(await waits(60_000, () => existsSync(`${state}/policy/current`))))
        throw new Error('no policy became active in a minute');
    },
    untilSettled: async () => {
      const isSettled = async () => bakeStateIn(await status()) === 'settled';
      if (await waits(180_000, isSettled)) return;
      const found = JSON.stringify({ status: await status(), history: await history() });
      throw new Error(`the first release did not settle in three minutes: ${found.slice(0, 8000)}`);
    },
    [Symbol.asyncDispose]: async () => {
      await agent?.[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

interface Places {
  readonly url: string;
  readonly repository: string;
  readonly state: string;
  readonly run: string;
  readonly yaml: string;
}

/** Without a sandbox, because a container may refuse one. No row depends on it. */
function configText({ url, repository, state, run, yaml }: Places): string {
  return `repository: ${url}/
root: ${repository}/metadata/1.root.json
state: ${state}
run: ${run}
host: { id: outage }
poll: { every: 1s }
sandbox: off
${yaml}`;
}

async function succeed(...args: readonly string[]): Promise<void> {
  const { exitCode, stdout, stderr } = await runWritProcess(args);
  if (exitCode !== 0) throw new Error(`writ ${args[0]} exited with ${exitCode}: ${stdout}${stderr}`);
}

/** @returns `baking`, `settled` or `failed` of the one bundle */
export function bakeStateIn(status: Readonly<Record<string, unknown>>): string | undefined {
  const bundles = (status['bundles'] ?? []) as readonly { readonly bake?: { readonly state: string } }[];
  return bundles[0]?.bake?.state;
}

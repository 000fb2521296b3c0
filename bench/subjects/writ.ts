// Writ: published by the program, served by `writ serve`, pulled by `writ pull` without an agent, as cron does.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { measured, outputOf, writProgram } from '../measure/measured-program.js';
import type { Sample } from '../measure/sample.js';
import { startWritServer, type WritServer } from '../web/writ-server.js';
import type { Ready, Subject } from './subject.js';

export const writ: Subject = {
  name: 'writ',
  needs: [],
  note: 'signatures and every digest checked, flushed to disk before the swap; `writ serve` beside it',
  setUp: async ({ directory, first, second }) => {
    const repository = await createRepository(directory);
    let published = await publish(repository, first);
    const server = await startWritServer(repository.repository);
    const command = (name: string, home: string): readonly string[] => {
      return [...writProgram, name, '--json', '--config', configure(repository, server, home)];
    };
    const pull = (home: string): Promise<Sample> => measuredPull(command, server, home);
    const ready: Ready = {
      acts: {
        publish: async () => published,
        'first sync': pull,
        'nothing new': pull,
        update: pull,
        status: (home) => measured(command('status', home), { notes: home }),
      },
      publishSecond: async () => {
        published = await publish(repository, second);
      },
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    };
    return ready;
  },
};

export interface Repository {
  readonly repository: string;
  readonly keys: string;
  readonly notes: string;
}

export const bundleName = 'policy';

/** @param directory empty; keys and repository are made in it */
export async function createRepository(directory: string): Promise<Repository> {
  const at = { repository: join(directory, 'repo'), keys: join(directory, 'keys'), notes: directory };
  await outputOf([
    ...writProgram,
    'init',
    '--repository',
    at.repository,
    '--keys',
    at.keys,
    '--no-passphrase',
  ]);
  return at;
}

export function publish(
  { repository, keys, notes }: Repository,
  source: string,
  bundle = bundleName,
): Promise<Sample> {
  const where = ['--repository', repository, '--keys', keys, '--bundle', bundle];
  return measured([...writProgram, 'publish', source, ...where], { notes });
}

export interface HostOptions {
  readonly bundles?: readonly string[];
  readonly pollEvery?: string;
  readonly workers?: readonly object[];
}

/** @param home of the host; its configuration is written once @returns path of the configuration */
export function configure(
  { repository }: Repository,
  { url }: Pick<WritServer, 'url'>,
  home: string,
  { bundles = [bundleName], pollEvery = '1h', workers }: HostOptions = {},
): string {
  const path = join(home, 'agent.yaml');
  if (existsSync(path)) return path;
  mkdirSync(join(home, 'run'), { recursive: true });
  const config = {
    repository: `${url}/`,
    root: join(repository, 'metadata', '1.root.json'),
    state: join(home, 'state'),
    run: join(home, 'run'),
    host: { id: 'bench' },
    poll: { every: pollEvery },
    bundles: bundles.map((name) => ({ name })),
    workers,
  };
  writeFileSync(path, JSON.stringify(config, undefined, 2));
  return path;
}

/** @param command of writ, by name and home */
export async function measuredPull(
  command: (name: string, home: string) => readonly string[],
  server: WritServer,
  home: string,
): Promise<Sample> {
  const { stdout, ...sample } = await server.counted(() => measured(command('pull', home), { notes: home }));
  const { changed } = JSON.parse(stdout) as { changed: boolean };
  if (!changed) return sample;
  const history = JSON.parse(await outputOf(command('history', home))) as History;
  return { ...sample, toSwapMs: toSwapMs(history) };
}

interface History {
  readonly entries: readonly { readonly steps: readonly { step: string; durationMs: number }[] }[];
}

/** Of the newest cycle, by the times of its steps. */
function toSwapMs({ entries }: History): number {
  const steps = entries[0]?.steps ?? [];
  const swap = steps.findIndex(({ step }) => step === 'swap');
  return steps.slice(0, swap + 1).reduce((sum, { durationMs }) => sum + durationMs, 0);
}

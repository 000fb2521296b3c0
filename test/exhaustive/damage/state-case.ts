// One harmed host and the commands of its administrator, in one process that may hang and be ended: what each command
// said, and what a reader of the policy saw behind it. Judges nothing.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { runWrit } from '../../kit/cli/run-writ.js';
import { type DamageCase, doHarm } from './state-harms.js';

/** Where everything lies below a directory; the host at work always has the same path, for its state may name it. */
export const places = (directory: string) => ({
  template: join(directory, 'template'),
  work: join(directory, 'work'),
  host: join(directory, 'work', 'host'),
  /** The repository before and behind the newest release. */
  repository: join(directory, 'work', 'repo'),
  newer: join(directory, 'newer'),
  config: join(directory, 'work', 'agent.yaml'),
});

export interface Said {
  readonly command: string;
  readonly exitCode: number | null;
  /** stdout and stderr. */
  readonly text: string;
  /** What `current` leads to behind it; undefined where nothing can be read there. */
  readonly read: string | undefined;
}

/** Looks, and mends. */
const before = [['status'], ['health'], ['pull'], ['verify', '--repair'], ['status'], ['verify']];
/** Where the repository has a newer release. */
const behind = [['pull'], ['status']];

export async function runCase(directory: string, damage: DamageCase): Promise<Said[]> {
  const { template, work, host, repository, newer } = places(directory);
  openAll(work);
  fs.rmSync(work, { recursive: true, force: true });
  execFileSync('cp', ['-a', template, work]);
  doHarm(host, damage);
  const said: Said[] = [];
  for (const command of before) said.push(await say(directory, command));
  fs.rmSync(repository, { recursive: true });
  execFileSync('cp', ['-a', newer, repository]);
  for (const command of behind) said.push(await say(directory, command));
  return said;
}

/** What was closed must be removed all the same, also by a user who is not root. */
function openAll(path: string): void {
  if (fs.existsSync(path)) execFileSync('chmod', ['-R', 'u+rwx', path]);
}

async function say(directory: string, command: readonly string[]): Promise<Said> {
  const { config, host } = places(directory);
  const { exitCode, stdout, stderr } = await runWrit([...command, '--json', '--config', config]);
  return { command: command.join(' '), exitCode, text: `${stdout}${stderr}`, read: readPolicy(host) };
}

function readPolicy(host: string): string | undefined {
  const path = join(host, 'state/policy/current/dns-edge/block.rpz');
  try {
    const stat = fs.statSync(path);
    return stat.isFile() && stat.size < 1000 ? fs.readFileSync(path, 'utf8') : 'no small file';
  } catch {
    return undefined;
  }
}

process.on('message', (order: { readonly directory: string; readonly damage: DamageCase }) => {
  runCase(order.directory, order.damage).then(
    (said) => process.send?.({ said }),
    (error: unknown) => process.send?.({ failure: error instanceof Error ? error.stack : String(error) }),
  );
});

// Runs the commands of an operator on one damaged host, in a process that may hang and be ended. Records the output of each
// command, and the policy that a reader finds after it. Checks no result.
import { execFileSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { runWrit } from '../../kit/cli/run-writ.js';
import { type DamageCase, doHarm } from './state-harms.js';

/** The paths below a directory. The host in use always has the same path, because its state may contain it. */
export const places = (directory: string) => ({
  template: join(directory, 'template'),
  work: join(directory, 'work'),
  host: join(directory, 'work', 'host'),
  /** The repository without and with the newest release. */
  repository: join(directory, 'work', 'repo'),
  newer: join(directory, 'newer'),
  config: join(directory, 'work', 'agent.yaml'),
});

export interface CommandResult {
  readonly command: string;
  readonly exitCode: number | null;
  /** stdout and stderr. */
  readonly text: string;
  /** The content that a reader finds after the command; undefined when it cannot be read. */
  readonly read: string | undefined;
}

/** Commands that inspect and repair the host. */
const commandsAfterDamage = [
  ['status'],
  ['health'],
  ['pull'],
  ['verify', '--repair'],
  ['status'],
  ['verify'],
];
/** Commands with a newer release in the repository. */
const commandsAfterRelease = [['pull'], ['status']];

export async function runCase(directory: string, damage: DamageCase): Promise<CommandResult[]> {
  const { template, work, host, repository, newer } = places(directory);
  openAll(work);
  fs.rmSync(work, { recursive: true, force: true });
  execFileSync('cp', ['-a', template, work]);
  doHarm(host, damage);
  const results: CommandResult[] = [];
  for (const command of commandsAfterDamage) results.push(await runCommand(directory, command));
  fs.rmSync(repository, { recursive: true });
  execFileSync('cp', ['-a', newer, repository]);
  for (const command of commandsAfterRelease) results.push(await runCommand(directory, command));
  return results;
}

/** Restores permissions, so that a user other than root can remove the files. */
function openAll(path: string): void {
  if (fs.existsSync(path)) execFileSync('chmod', ['-R', 'u+rwx', path]);
}

async function runCommand(directory: string, command: readonly string[]): Promise<CommandResult> {
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
    (results) => process.send?.({ results }),
    (error: unknown) => process.send?.({ failure: error instanceof Error ? error.stack : String(error) }),
  );
});

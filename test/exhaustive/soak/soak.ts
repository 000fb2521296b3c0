// `npm run soak -- --minutes N [--seed S] [--hosts H] [--only ACTION]` runs real processes on loopback with random faults,
// while readers check every file all the time. Exits with 1 after any violation. Limited by its time. Uses a private mount
// namespace where the system permits it, so that it can fill a disk; elsewhere it prints what it leaves out.
import { spawn, spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { searchSeed } from '../../kit/assert/seeded.js';
import { soak } from './soak-run.js';

const namespaceVariable = 'WRIT_SOAK_INSIDE';
const usage = 'usage: npm run soak -- --minutes N [--seed S] [--hosts H] [--only ACTION]';

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

interface SoakArguments {
  readonly minutes: number;
  readonly seed: number;
  readonly hosts: number;
  /** Part of the names of the actions to run; empty for all. */
  readonly only: string;
}

/** @returns undefined for invalid arguments */
function parseArguments(args: readonly string[]): SoakArguments | undefined {
  const text = { type: 'string' } as const;
  try {
    const { values } = parseArgs({
      args: [...args],
      options: { minutes: text, seed: text, hosts: text, only: text },
    });
    const minutes = Number(values.minutes ?? 1);
    const seed = Number(values.seed ?? searchSeed());
    const hosts = Number(values.hosts ?? 2);
    const isUsable =
      minutes > 0 && Number.isSafeInteger(seed) && Number.isSafeInteger(hosts) && hosts > 0 && hosts <= 16;
    return isUsable ? { minutes, seed, hosts, only: values.only ?? '' } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Runs this program again in a mount namespace that ends with it. @returns its exit code; undefined without permission
 */
async function runInNamespace(args: readonly string[]): Promise<number | undefined> {
  const unshare = ['unshare', ...(process.getuid?.() === 0 ? [] : ['-r']), '-m'] as const;
  const [program, ...flags] = unshare;
  if (spawnSync(program, [...flags, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status !== 0) return undefined;
  const own = [process.execPath, ...process.execArgv, process.argv[1] ?? '', ...args];
  const env = { ...process.env, [namespaceVariable]: 'mounts' };
  const child = spawn(program, [...flags, ...own], { env, stdio: 'inherit' });
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => child.kill(name));
  return new Promise((resolve) => child.once('close', (exitCode) => resolve(exitCode ?? 1)));
}

async function main(args: readonly string[]): Promise<number> {
  const options = parseArguments(args);
  if (options === undefined) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  // Both processes must use the same seed.
  const again = [...args, '--seed', String(options.seed)];
  if (process.env[namespaceVariable] === undefined) {
    const exitCode = await runInNamespace(again);
    if (exitCode !== undefined) return exitCode;
    print('left out: no disk is filled, because mounts need root or user namespaces');
  }
  print(`seed ${options.seed}, ${options.minutes} minutes, ${options.hosts} hosts`);
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stop.abort());
  const violations = await soak({
    ...options,
    mounts: process.env[namespaceVariable] === 'mounts',
    print,
    signal: stop.signal,
  });
  return violations.length === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));

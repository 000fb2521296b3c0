// `npm run soak -- --minutes N [--seed S] [--hosts H] [--only ACTION]`: real processes on loopback, random trouble, and readers that look
// at every file all the time. Ends with 1 after any violation. Bounded by its time; uses a mount namespace of its own
// where it may, so that a disk can be filled, and says what it leaves out where not.
import { spawn, spawnSync } from 'node:child_process';
import { parseArgs } from 'node:util';
import { searchSeed } from '../../kit/assert/seeded.js';
import { soak } from './soak-run.js';

const insideMark = 'WRIT_SOAK_INSIDE';
const usage = 'usage: npm run soak -- --minutes N [--seed S] [--hosts H] [--only ACTION]';

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

interface Wanted {
  readonly minutes: number;
  readonly seed: number;
  readonly hosts: number;
  /** Part of the name of the actions that are done; all when it is empty. */
  readonly only: string;
}

/** @returns undefined for what cannot be understood */
function wanted(args: readonly string[]): Wanted | undefined {
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

/** Runs itself again where mounts are private and end with it. @returns its exit code; undefined where it may not */
async function insideNamespace(args: readonly string[]): Promise<number | undefined> {
  const unshare = ['unshare', ...(process.getuid?.() === 0 ? [] : ['-r']), '-m'] as const;
  const [program, ...flags] = unshare;
  if (spawnSync(program, [...flags, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']).status !== 0) return undefined;
  const own = [process.execPath, ...process.execArgv, process.argv[1] ?? '', ...args];
  const env = { ...process.env, [insideMark]: 'mounts' };
  const child = spawn(program, [...flags, ...own], { env, stdio: 'inherit' });
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => child.kill(name));
  return new Promise((resolve) => child.once('close', (exitCode) => resolve(exitCode ?? 1)));
}

async function main(args: readonly string[]): Promise<number> {
  const options = wanted(args);
  if (options === undefined) {
    process.stderr.write(`${usage}\n`);
    return 2;
  }
  // The seed is chosen once.
  const again = [...args, '--seed', String(options.seed)];
  if (process.env[insideMark] === undefined) {
    const exitCode = await insideNamespace(again);
    if (exitCode !== undefined) return exitCode;
    say('left out: no disk is filled, because mounts need root or user namespaces');
  }
  say(`seed ${options.seed}, ${options.minutes} minutes, ${options.hosts} hosts`);
  const stop = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => stop.abort());
  const violations = await soak({
    ...options,
    mounts: process.env[insideMark] === 'mounts',
    say,
    signal: stop.signal,
  });
  return violations.length === 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));

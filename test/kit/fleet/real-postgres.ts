// A real PostgreSQL of Debian on loopback, in its own directory. It runs as the user `postgres` if the tests run as root,
// because initdb refuses root. Each store gets its own database. Flushes are as in production.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import { freePort } from '../programs/free-port.js';

const versions = '/usr/lib/postgresql';

export interface RunningPostgres {
  /** Makes an empty database. @returns its postgres:// URL */
  newDatabase(): Promise<string>;
  /** Stops it as a crash does (`immediate`), and starts it again with the same data. */
  restart(): Promise<void>;
  /** Process id of the postmaster. */
  pid(): number;
  [Symbol.asyncDispose](): Promise<void>;
}

/** @returns options for node:test, as `needs` of real-programs: Debian keeps these programs out of PATH */
export function needsPostgres(): { skip?: string } {
  if (binaries() !== undefined || process.env['WRIT_TEST_REQUIRE_REAL'] === '1') return {};
  return { skip: 'PostgreSQL is not installed: apt-get install postgresql' };
}

function binaries(): string | undefined {
  if (!existsSync(versions)) return undefined;
  const [newest] = readdirSync(versions).sort((a, b) => Number(b) - Number(a));
  return newest === undefined ? undefined : join(versions, newest, 'bin');
}

/**
 * @param directory of its data, which must exist and be accessible for other users
 * @throws Error if PostgreSQL is not installed or does not start
 */
export async function startPostgres(directory: string): Promise<RunningPostgres> {
  const bin = binaries();
  if (bin === undefined) throw new Error('PostgreSQL is not installed: apt-get install postgresql');
  const owner = ownerOfData(directory);
  const data = join(directory, 'data');
  mkdirSync(data, { mode: 0o700 });
  if (owner !== undefined) chownSync(data, owner.uid, owner.gid);
  const init = ['-D', data, '-U', 'writ', '-A', 'trust', '-E', 'UTF8', '--locale=C'];
  execFileSync(join(bin, 'initdb'), init, { ...owner, cwd: data, stdio: 'ignore' });
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', `port=${port}`, 'unix_socket_directories='];
  const args = ['-D', data, ...settings.flatMap((setting) => ['-c', setting])];
  const start = async (): Promise<ChildProcess> => {
    const child = spawn(join(bin, 'postgres'), args, { ...owner, cwd: data, stdio: 'ignore' });
    await waitUntilUp(child, urlOf(port, 'postgres'));
    return child;
  };
  let child = await start();
  let databases = 0;
  return {
    newDatabase: async () => {
      const name = `fleet_${++databases}`;
      await ask(urlOf(port, 'postgres'), `create database ${name}`);
      return urlOf(port, name);
    },
    restart: async () => {
      await stop(child, 'SIGQUIT');
      child = await start();
    },
    pid: () => child.pid ?? 0,
    [Symbol.asyncDispose]: () => stop(child, 'SIGINT'),
  };
}

function urlOf(port: number, database: string): string {
  return `postgres://writ@127.0.0.1:${port}/${database}`;
}

function ownerOfData(directory: string): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const idOf = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  const owner = { uid: idOf('-u'), gid: idOf('-g') };
  chownSync(directory, owner.uid, owner.gid);
  return owner;
}

async function ask(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

async function waitUntilUp(child: ChildProcess, url: string): Promise<void> {
  for (let tries = 0; tries < 1200 && child.exitCode === null; tries++) {
    try {
      return await ask(url, 'select 1');
    } catch {
      await setTimeout(50);
    }
  }
  child.kill('SIGQUIT');
  throw new Error('PostgreSQL did not come up');
}

async function stop(child: ChildProcess, signal: 'SIGINT' | 'SIGQUIT'): Promise<void> {
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  child.kill(signal);
  await ended;
}

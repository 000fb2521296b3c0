// A real squid on loopback as a proxy with authentication: its rules allow the ports of a test, and it resolves the names of a
// file.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { runCommand } from '../../../src/platform/process/run-command.js';
import { tempDir } from '../disk/temp-dir.js';
import { freePort } from './free-port.js';

export interface RunningSquid {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  [Symbol.asyncDispose](): Promise<void>;
}

interface SquidRules {
  /** Names that it resolves to 127.0.0.1; other names have no address. */
  readonly names: readonly string[];
  readonly ports: readonly number[];
  readonly user: string;
  readonly password: string;
}

const helper = '/usr/lib/squid/basic_ncsa_auth';

/** @returns the process after it accepts connections */
export async function startSquid(rules: SquidRules): Promise<RunningSquid> {
  const port = await freePort();
  const dir = tempDir();
  const place = (name: string): string => dir.join(name);
  const name = `writ${randomBytes(6).toString('hex')}`;
  writeFileSync(place('hosts'), `127.0.0.1 ${rules.names.join(' ')}\n`);
  writeFileSync(place('users'), `${rules.user}:${await passwordLine(rules.password)}\n`);
  writeFileSync(place('squid.log'), '');
  const config = [
    `http_port 127.0.0.1:${port}`,
    ...['pid_filename none', 'access_log none', 'cache deny all', 'shutdown_lifetime 0 seconds'],
    `cache_log ${place('squid.log')}`,
    `coredump_dir ${dir.path}`,
    `hosts_file ${place('hosts')}`,
    ...['dns_nameservers 127.0.0.1', 'dns_timeout 1 second', 'pinger_enable off'],
    `auth_param basic program ${helper} ${place('users')}`,
    'acl known proxy_auth REQUIRED',
    `acl allowed port ${rules.ports.join(' ')}`,
    ...['http_access deny !allowed', 'http_access allow known', 'http_access deny all'],
  ];
  writeFileSync(place('squid.conf'), `${config.join('\n')}\n`);
  // As root squid changes to the user proxy of its package.
  chmodSync(dir.path, 0o755);
  chmodSync(place('squid.log'), 0o666);
  const args = ['-N', '-n', name, '-f', place('squid.conf')];
  const child = spawn('/usr/sbin/squid', args, { stdio: ['ignore', 'ignore', 'ignore'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await ended;
    for (const left of readdirSync('/dev/shm')) if (left.startsWith(name)) rmSync(join('/dev/shm', left));
    dir[Symbol.dispose]();
  };
  for (let tries = 0; tries < 6000 && child.exitCode === null; tries += 1) {
    if (await accepts(port)) return { url: `http://127.0.0.1:${port}`, [Symbol.asyncDispose]: stop };
    await setTimeout(10);
  }
  const log = readFileSync(place('squid.log'), 'utf8');
  await stop();
  throw new Error(`squid did not start: ${log}`);
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    const end = (taken: boolean) => () => {
      socket.destroy();
      resolve(taken);
    };
    socket.once('connect', end(true)).once('error', end(false));
  });
}

async function passwordLine(password: string): Promise<string> {
  const argv = ['openssl', 'passwd', '-apr1', password] as const;
  const result = await runCommand({ argv, timeoutMs: 60_000, maxOutputBytes: 1000 });
  if (result.kind !== 'exited' || result.exitCode !== 0) throw new Error(JSON.stringify(result));
  return result.stdout.toString().trim();
}

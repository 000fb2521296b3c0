// A real nginx, in one process or as a master with workers, without root's users and without a daemon, serving one server block on loopback.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from './free-port.js';

export interface RunningNginx {
  /** Without a slash at its end. */
  readonly url: string;
  /** Of the master. */
  readonly pid: number;
  /** The main configuration, which does not name the pid file. */
  readonly config: string;
  readonly pidFile: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * @param directory for its own files; it must exist
 * @param serverBlock given the `listen` value, the text of `server { ... }`
 * @param options.workers as many under a master; left out: one process for all
 */
export async function startNginx(
  directory: string,
  serverBlock: (listen: string) => string,
  options: { readonly workers?: number } = {},
): Promise<RunningNginx> {
  const listen = `127.0.0.1:${await freePort()}`;
  const config = join(directory, 'nginx.conf');
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
    mkdirSync(join(directory, name));
    return `${name}_temp_path ${join(directory, name)};`;
  });
  writeFileSync(
    config,
    [
      'daemon off;',
      ...(options.workers === undefined ? ['master_process off;'] : [`worker_processes ${options.workers};`]),
      ...(process.getuid?.() === 0 ? ['user root;'] : []),
      'error_log stderr;',
      'events { worker_connections 64; }',
      `http { access_log off; ${temporary.join(' ')} ${serverBlock(listen)} }`,
    ].join('\n'),
  );
  const pidFile = join(directory, 'nginx.pid');
  // Not in the file: `nginx -t` wants to write where that says, and it belongs to the nginx that runs.
  const args = ['-p', directory, '-c', config, '-e', 'stderr', '-g', `pid ${pidFile};`];
  const child = spawn('/usr/sbin/nginx', args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  const url = `http://${listen}`;
  await waitUntilUp(child, url);
  return {
    url,
    pid: child.pid ?? 0,
    pidFile,
    config,
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM');
      await ended;
    },
  };
}

async function waitUntilUp(child: ChildProcess, url: string): Promise<void> {
  let complaint = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    complaint += chunk.toString();
  });
  for (let tries = 0; tries < 6000 && child.exitCode === null; tries += 1) {
    try {
      await (await fetch(url)).arrayBuffer();
      return;
    } catch {
      await setTimeout(10);
    }
  }
  child.kill('SIGKILL');
  throw new Error(`nginx did not come up: ${complaint}`);
}

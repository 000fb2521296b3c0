// A real nginx on loopback with one server block, as one process or a master with workers, without root's users and not as a
// daemon.
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { freePort } from './free-port.js';

export interface RunningNginx {
  /** URL without a slash at its end. */
  readonly url: string;
  /** Process id of the master. */
  readonly pid: number;
  /** The main configuration, which does not name the pid file. */
  readonly config: string;
  readonly pidFile: string;
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * @param directory for its own files; it must exist
 * @param serverBlock receives the `listen` value, returns the text of `server { ... }`
 * @param options.workers number of workers of a master; undefined: one process
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
  // Given as an option, because `nginx -t` would overwrite a pid file that the configuration names.
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

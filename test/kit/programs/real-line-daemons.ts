// The real BIRD, unbound and HAProxy, each with a control socket of text lines and a policy file that a test writes.
// fake-line-server.ts has fakes with faults.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { until } from '../assert/until.js';
import { freePort } from './free-port.js';
import { isAlive } from './processes.js';

export interface RealDaemon extends AsyncDisposable {
  readonly socket: string;
  readonly isAlive: () => boolean;
}

async function start(argv: readonly [string, ...string[]], socket: string): Promise<RealDaemon> {
  const [program, ...args] = argv;
  // A killed daemon leaves its socket, which would end the wait too soon.
  rmSync(socket, { force: true });
  const child: ChildProcess = spawn(program, args, { stdio: 'ignore' });
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  await until(() => existsSync(socket));
  return {
    socket,
    isAlive: () => isAlive(child.pid ?? 0),
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** @param directory that has `policy.conf`, in BIRD's language */
export function startBird(directory: string): Promise<RealDaemon> {
  const config = join(directory, 'bird.conf');
  const socket = join(directory, 'bird.ctl');
  const lines = ['router id 127.0.0.1;', 'protocol device {}', `include "${directory}/policy.conf";`];
  writeFileSync(config, `${lines.join('\n')}\n`);
  return start(['bird', '-f', '-c', config, '-s', socket, '-P', join(directory, 'bird.pid')], socket);
}

/** @param directory that has `block.rpz`, a zone */
export async function startUnbound(directory: string): Promise<RealDaemon> {
  const config = join(directory, 'unbound.conf');
  const socket = join(directory, 'unbound.ctl');
  writeFileSync(
    config,
    `server:
  interface: 127.0.0.1@${await freePort()}
  chroot: ""
  username: ""
  directory: "${directory}"
  pidfile: "${directory}/unbound.pid"
  use-syslog: no
  do-daemonize: no
  module-config: "respip iterator"
remote-control:
  control-enable: yes
  control-interface: ${socket}
  control-use-cert: no
rpz:
  name: block.rpz
  zonefile: "${directory}/block.rpz"
`,
  );
  return start(['unbound', '-d', '-c', config], socket);
}

/** @param directory that has `policy.cfg`, a section of HAProxy's configuration */
export async function startHaproxy(directory: string): Promise<RealDaemon> {
  const config = join(directory, 'haproxy.cfg');
  const socket = join(directory, 'master.sock');
  const port = await freePort();
  writeFileSync(
    config,
    `defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 60s
frontend web
  bind 127.0.0.1:${port}
  http-request return status 200
`,
  );
  return start(['haproxy', '-W', '-S', socket, '-f', config, '-f', join(directory, 'policy.cfg')], socket);
}

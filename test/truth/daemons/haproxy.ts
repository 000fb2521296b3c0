// HAProxy as master and worker, with the policy as its second configuration file.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon, Stage } from '../parts/daemon.js';
import { curl, runInGroup } from '../parts/processes.js';
import { stampPlaceholder } from '../parts/zones.js';

function frontend({ ports: [port] }: Stage, version: string, more = ''): string {
  return `# ${version}
frontend web
  bind 127.0.0.1:${port}
${more}  http-request return status 200 content-type text/plain string "${stampPlaceholder}"
`;
}

export const haproxy: Daemon = {
  name: 'haproxy',
  packages: ['haproxy', 'curl'],
  programs: ['haproxy', 'curl'],
  process: 'daemon',
  starts: 'after-policy',
  stamps: ['policy.cfg'],
  good: (version, stage) => ({ 'policy.cfg': frontend(stage, version) }),
  bad: (version, stage) => ({ 'policy.cfg': frontend(stage, version).replace('return', 'retrun') }),
  half: (version, stage) =>
    // The configuration is valid, but this host does not have the address.
    ({ 'policy.cfg': frontend(stage, version, '  bind 192.0.2.1:8099\n') }),
  empty: { never: 'it reads its files only at a reload' },
  open: ({ dir, policy, ports: [port] }) => {
    const [config, socket, pidFile] = [
      join(dir, 'haproxy.cfg'),
      join(dir, 'master'),
      join(dir, 'haproxy.pid'),
    ];
    let command: readonly string[] = [];
    const ask = (): Promise<string | undefined> => curl('-f', `http://127.0.0.1:${port}/`);
    const process = {
      log: join(dir, 'log'),
      isUp: async () => existsSync(socket) && (await ask()) !== undefined,
    };
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/etc/haproxy/haproxy.cfg', config],
        ['/run/haproxy-master.sock', socket],
        ['/run/haproxy.pid', pidFile],
        ['unit: haproxy.service', `pidFile: ${pidFile}`],
        ['http://127.0.0.1/', `http://127.0.0.1:${port}/`],
      ],
      prepare: (own) => {
        command = own.trim().split(/\s+/).slice(1);
        writeFileSync(
          config,
          'defaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n  timeout connect 5s\n',
        );
      },
      ...runInGroup(() => ({ ...process, argv: ['haproxy', ...command] })),
      ask,
    };
  },
};

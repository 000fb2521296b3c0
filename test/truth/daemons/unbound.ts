// unbound with one local zone, which it can reload separately.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { runInGroup, stdoutOf } from '../parts/processes.js';
import { askZones, brokenZone, zone } from '../parts/zones.js';

export const unbound: Daemon = {
  name: 'unbound',
  packages: ['unbound', 'bind9-utils', 'bind9-dnsutils'],
  programs: ['unbound', 'named-checkzone', 'dig'],
  process: 'daemon',
  starts: 'after-policy',
  stamps: ['corp.test.zone'],
  good: (version) => ({ 'corp.test.zone': zone(version) }),
  bad: (version) => ({ 'corp.test.zone': `nonsense\n${zone(version)}` }),
  half: (version) => ({ 'corp.test.zone': brokenZone(version) }),
  empty: { never: 'no command of it empties a zone' },
  open: ({ dir, policy, ports: [port] }) => {
    const [config, socket, pidFile] = [join(dir, 'unbound.conf'), join(dir, 'ctl'), join(dir, 'unbound.pid')];
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/run/unbound.ctl', socket],
        ['unit: unbound.service', `pidFile: ${pidFile}`],
      ],
      prepare: (own) =>
        writeFileSync(
          config,
          `server:
  interface: 127.0.0.1@${port}
  chroot: ""
  username: ""
  directory: "${dir}"
  pidfile: "${pidFile}"
  use-syslog: no
  do-daemonize: no
remote-control:
  control-enable: yes
  control-interface: ${socket}
  control-use-cert: no
${own}`,
        ),
      ...runInGroup({
        argv: ['unbound', '-d', '-c', config],
        log: join(dir, 'log'),
        isUp: async () =>
          existsSync(socket) && (await stdoutOf('unbound-control', '-c', config, 'status')) !== undefined,
      }),
      ask: () => askZones(port, 'corp.test'),
    };
  },
};

// NSD with one zone.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { runInGroup } from '../parts/processes.js';
import { askZones, brokenZone, zone } from '../parts/zones.js';

export const nsd: Daemon = {
  name: 'nsd',
  packages: ['nsd', 'bind9-dnsutils'],
  programs: ['nsd', 'nsd-checkzone', 'dig'],
  process: 'daemon',
  stamps: ['corp.test.zone'],
  good: (version) => ({ 'corp.test.zone': zone(version) }),
  bad: (version) => ({ 'corp.test.zone': `nonsense\n${zone(version)}` }),
  half: (version) => ({ 'corp.test.zone': brokenZone(version) }),
  empty: { never: 'no command of it empties a zone' },
  open: ({ dir, policy, ports: [port] }) => {
    const [config, socket, pidFile] = [join(dir, 'nsd.conf'), join(dir, 'ctl'), join(dir, 'nsd.pid')];
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/run/nsd/nsd.ctl', socket],
        ['unit: nsd.service', `pidFile: ${pidFile}`],
        ['@127.0.0.1', `@127.0.0.1 -p ${port}`],
      ],
      prepare: (own) =>
        writeFileSync(
          config,
          `server:
  ip-address: 127.0.0.1@${port}
  username: ""
  chroot: ""
  zonesdir: "${dir}"
  database: ""
  pidfile: "${pidFile}"
  xfrdfile: "${dir}/xfrd.state"
  xfrdir: "${dir}"
  zonelistfile: "${dir}/zone.list"
  server-count: 1
remote-control:
  control-enable: yes
  control-interface: ${socket}
${own}`,
        ),
      ...runInGroup({
        argv: ['nsd', '-d', '-c', config],
        log: join(dir, 'log'),
        isUp: () => existsSync(socket) && existsSync(pidFile),
      }),
      ask: () => askZones(port, 'corp.test'),
    };
  },
};

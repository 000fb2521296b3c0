// Knot DNS with one primary zone.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { runInGroup, stdoutOf } from '../parts/processes.js';
import { askZones, brokenZone, zone } from '../parts/zones.js';

export const knot: Daemon = {
  name: 'knot',
  packages: ['knot', 'bind9-utils', 'bind9-dnsutils'],
  programs: ['knotd', 'knotc', 'named-checkzone', 'dig'],
  process: 'daemon',
  stamps: ['corp.test.zone'],
  good: (version) => ({ 'corp.test.zone': zone(version) }),
  bad: (version) => ({ 'corp.test.zone': `nonsense\n${zone(version)}` }),
  half: (version) => ({ 'corp.test.zone': brokenZone(version) }),
  empty: { never: 'its only way is zone-purge, which removes the file' },
  open: ({ dir, policy, ports: [port] }) => {
    const [config, run] = [join(dir, 'knot.conf'), join(dir, 'run')];
    const [socket, pidFile] = [join(run, 'knot.sock'), join(run, 'knot.pid')];
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['[knotc, -b', `[knotc, -s, ${socket}, -b`],
        ['/run/knot/knot.pid', pidFile],
      ],
      prepare: (own) => {
        mkdirSync(run);
        writeFileSync(
          config,
          `server:
  rundir: ${run}
  listen: 127.0.0.1@${port}
database:
  storage: ${dir}/db
log:
  - target: stdout
    any: info
${own}`,
        );
      },
      ...runInGroup({
        argv: ['knotd', '-c', config],
        log: join(dir, 'log'),
        isUp: async () =>
          existsSync(socket) && (await stdoutOf('knotc', '-s', socket, 'status')) !== undefined,
      }),
      ask: () => askZones(port, 'corp.test'),
    };
  },
};

// BIND 9 with two primary zones, of which a release can break only one.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { runInGroup, stdoutOf } from '../parts/processes.js';
import { askZones, brokenZone, zone } from '../parts/zones.js';

export const bind: Daemon = {
  name: 'bind',
  packages: ['bind9', 'bind9-utils', 'bind9-dnsutils'],
  programs: ['named', 'rndc', 'named-checkzone', 'dig'],
  process: 'daemon',
  stamps: ['corp.test.zone', 'lab.test.zone'],
  good: (version) => ({ 'corp.test.zone': zone(version), 'lab.test.zone': zone(version) }),
  bad: (version) => ({ 'corp.test.zone': brokenZone(version), 'lab.test.zone': brokenZone(version) }),
  half: (version) => ({ 'corp.test.zone': zone(version), 'lab.test.zone': brokenZone(version) }),
  empty: { never: 'its zones are its files: nobody can empty them from outside without a reload' },
  open: ({ dir, policy, ports: [port, controlPort] }) => {
    const [config, control, pidFile] = [
      join(dir, 'named.conf'),
      join(dir, 'rndc.conf'),
      join(dir, 'named.pid'),
    ];
    const key = 'key own { algorithm hmac-sha256; secret "c2VjcmV0IG9mIGEgdGVzdCwgbm8gc2VjcmV0IQ=="; };\n';
    const isUp = async (): Promise<boolean> =>
      existsSync(pidFile) && (await stdoutOf('rndc', '-c', control, 'status')) !== undefined;
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['unit: named.service', `pidFile: ${pidFile}`],
        ['[rndc, reload]', `[rndc, -c, ${control}, reload]`],
        ['@127.0.0.1', `@127.0.0.1 -p ${port}`],
      ],
      prepare: (own) => {
        mkdirSync(join(dir, 'work'));
        writeFileSync(
          config,
          `${key}controls { inet 127.0.0.1 port ${controlPort} allow { 127.0.0.1; } keys { own; }; };
options { directory "${dir}/work"; listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; };
pid-file "${pidFile}"; session-keyfile none; recursion no; notify no; dnssec-validation no; };
${own}`,
        );
        const server = `default-key own; default-server 127.0.0.1; default-port ${controlPort};`;
        writeFileSync(control, `${key}options { ${server} };\n`);
      },
      ...runInGroup({ argv: ['named', '-f', '-g', '-n', '1', '-c', config], log: join(dir, 'log'), isUp }),
      ask: () => askZones(port, 'corp.test', 'lab.test'),
    };
  },
};

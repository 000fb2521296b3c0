// PowerDNS Recursor with a response policy zone.
import { readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { runInGroup, stdoutOf } from '../parts/processes.js';
import { askZones, stampPlaceholder } from '../parts/zones.js';

function rpz(version: string, between = ''): string {
  return `$TTL 1
$ORIGIN block.rpz.
@ SOA ns.test. admin.test. ${version.slice(1)} 3600 600 86400 1
@ NS ns.test.
stamp.corp.test TXT "${stampPlaceholder}"
${between}last.corp.test TXT "${stampPlaceholder}"
`;
}

export const pdnsRecursor: Daemon = {
  name: 'pdns-recursor',
  packages: ['pdns-recursor', 'bind9-utils', 'bind9-dnsutils'],
  programs: ['pdns_recursor', 'rec_control', 'named-checkzone', 'dig'],
  process: 'daemon',
  stamps: ['block.rpz'],
  good: (version) => ({ 'block.rpz': rpz(version) }),
  bad: (version) => ({ 'block.rpz': `nonsense\n${rpz(version)}` }),
  half: (version) => ({ 'block.rpz': rpz(version, 'bad A 192.0.2.999\n') }),
  empty: { never: 'no command of it removes a policy zone' },
  open: ({ dir, policy, ports: [port] }) => {
    const lua = join(dir, 'recursor.lua');
    const [pidFile, control] = [join(dir, 'pdns_recursor.pid'), `--socket-dir=${dir}`];
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['[rec_control,', `[rec_control, ${control},`],
        ['unit: pdns-recursor.service', `pidFile: ${pidFile}`],
        ['@127.0.0.1', `@127.0.0.1 -p ${port}`],
      ],
      prepare: (own) => {
        writeFileSync(lua, own);
        const keys = {
          'local-address': '127.0.0.1',
          'local-port': port,
          'socket-dir': dir,
          'lua-config-file': lua,
          'disable-syslog': 'yes',
          'write-pid': 'yes',
          daemon: 'no',
          threads: 1,
          dnssec: 'off',
          'hint-file': 'no',
          'query-local-address': '127.0.0.1',
        };
        const lines = Object.entries(keys).map(([key, value]) => `${key}=${value}\n`);
        writeFileSync(join(dir, 'recursor.conf'), lines.join(''));
      },
      ...runInGroup({
        argv: ['pdns_recursor', `--config-dir=${dir}`],
        log: join(dir, 'log'),
        isUp: async () =>
          readdirSync(dir).some((name) => name.endsWith('.controlsocket')) &&
          (await stdoutOf('rec_control', control, 'ping'))?.startsWith('pong') === true,
      }),
      ask: () => askZones(port, 'corp.test'),
    };
  },
};

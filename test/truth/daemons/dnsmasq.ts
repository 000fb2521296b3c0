// dnsmasq with names from a hosts file, which it reads again at SIGHUP.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { dig, joinVersions, runInGroup } from '../parts/processes.js';
import { stampPlaceholder } from '../parts/zones.js';

function hosts(version: string, between = ''): string {
  const address = `192.0.2.${version.slice(1)}`;
  const line = (name: string): string =>
    `${address} ${name}.corp.test ${stampPlaceholder}.${name}.corp.test\n`;
  return `${line('first')}${between}${line('last')}`;
}

export const dnsmasq: Daemon = {
  name: 'dnsmasq',
  packages: ['dnsmasq-base', 'bind9-dnsutils'],
  programs: ['dnsmasq', 'dig'],
  process: 'daemon',
  stamps: ['hosts'],
  good: (version) => ({ hosts: hosts(version) }),
  bad: (version) => ({ hosts: hosts(version).replaceAll('192.0.2.', 'nonsense-') }),
  half: (version) => ({ hosts: hosts(version).replace(/192\S+ last/, 'nonsense last') }),
  empty: { never: 'it has no control program that could' },
  open: ({ dir, policy, ports: [port] }) => {
    const [config, pidFile] = [join(dir, 'dnsmasq.conf'), join(dir, 'dnsmasq.pid')];
    const version = async (name: string): Promise<string | undefined> =>
      (await dig(port, name, 'A'))?.replace('192.0.2.', 'v');
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/run/dnsmasq/dnsmasq.pid', pidFile],
        ['@127.0.0.1', `@127.0.0.1 -p ${port}`],
      ],
      prepare: (own) =>
        writeFileSync(
          config,
          `${own}port=${port}\nlisten-address=127.0.0.1\nbind-interfaces\nno-resolv\nno-hosts\npid-file=${pidFile}\n`,
        ),
      ...runInGroup({
        argv: ['dnsmasq', '--keep-in-foreground', '--log-facility=-', '-C', config],
        log: join(dir, 'log'),
        isUp: async () => existsSync(pidFile) && (await dig(port, 'version.bind', 'TXT')) !== '',
      }),
      ask: async () => joinVersions([await version('first.corp.test'), await version('last.corp.test')]),
    };
  },
};

// BIRD 2 with two static protocols as policy, each with a route that contains the version; no route reaches the kernel.
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { joinVersions, runInGroup, stdoutOf } from '../parts/processes.js';

function protocols(version: string, between = ''): string {
  const number = version.slice(1);
  const one = (name: string, net: string): string =>
    `protocol static ${name} { description "policy @writ.serial@"; ipv4; route ${net}.${number}/32 blackhole; }\n`;
  return `${one('policy_one', '192.0.2')}${between}${one('policy_two', '198.51.100')}`;
}

export const bird: Daemon = {
  name: 'bird',
  packages: ['bird2'],
  programs: ['bird', 'birdc'],
  process: 'daemon',
  starts: 'after-policy',
  stamps: ['policy.conf'],
  good: (version) => ({ 'policy.conf': protocols(version) }),
  bad: (version) => ({ 'policy.conf': protocols(version).replaceAll('route', 'ruote') }),
  half: (version) => ({ 'policy.conf': protocols(version, 'protocol bgp peer { local as 65000; }\n') }),
  empty: async (instance) => {
    await instance.control?.('disable', 'policy_one');
    await instance.control?.('disable', 'policy_two');
  },
  open: ({ dir, policy }) => {
    const [config, socket] = [join(dir, 'bird.conf'), join(dir, 'bird.ctl')];
    const control = (...args: string[]): Promise<string | undefined> =>
      stdoutOf('birdc', '-s', socket, ...args);
    const serves = (routes: string, net: string): string | undefined => {
      const number = new RegExp(`${net.replaceAll('.', '\\.')}\\.(\\d+)/32`).exec(routes)?.[1];
      return number === undefined ? undefined : `v${number}`;
    };
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/etc/bird/bird.conf', config],
        ['/run/bird/bird.ctl', socket],
        ['unit: bird.service', `listens: ${socket}`],
        ['/run/bird]', `${dir}]`],
        ['birdc -r', `birdc -r -s ${socket}`],
      ],
      prepare: (own) => writeFileSync(config, `router id 127.0.0.1;\nprotocol device {}\n${own}`),
      ...runInGroup({
        argv: ['bird', '-f', '-u', 'bird', '-g', 'bird', '-c', config, '-s', socket],
        log: join(dir, 'log'),
        isUp: async () => existsSync(socket) && (await control('show', 'status')) !== undefined,
      }),
      control,
      ask: async () => {
        const routes = (await control('show', 'route')) ?? '';
        return joinVersions([serves(routes, '192.0.2'), serves(routes, '198.51.100')]);
      },
    };
  },
};

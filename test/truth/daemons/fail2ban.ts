// fail2ban with one jail as policy, with the version in its `findtime`; it bans no address.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon, Stage } from '../parts/daemon.js';
import { runInGroup, stdoutOf } from '../parts/processes.js';

function jail({ dir }: Stage, version: string, regex = '^refused <HOST>$'): string {
  return `[site]
enabled = true
backend = polling
logpath = ${dir}/app.log
maxretry = ${version.slice(1)}
failregex = ${regex}
ignoreregex = ^stamp @writ.serial@$
action =
`;
}

export const fail2ban: Daemon = {
  name: 'fail2ban',
  packages: ['fail2ban'],
  programs: ['fail2ban-server', 'fail2ban-client'],
  process: 'daemon',
  stamps: ['site.conf'],
  good: (version, stage) => ({ 'site.conf': jail(stage, version) }),
  bad: (version, stage) => ({ 'site.conf': `nonsense\n${jail(stage, version)}` }),
  half: (version, stage) => ({ 'site.conf': jail(stage, version, '^refused (<HOST>$') }),
  empty: async (instance) => {
    await instance.control?.('stop', 'site');
  },
  open: ({ dir, policy }) => {
    const [config, socket, pidFile] = [join(dir, 'etc'), join(dir, 'sock'), join(dir, 'fail2ban.pid')];
    const own = ['-c', config, '-s', socket, '-p', pidFile];
    const control = (...args: string[]): Promise<string | undefined> =>
      stdoutOf('fail2ban-client', ...own, ...args);
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['fail2ban-client', `fail2ban-client ${own.join(' ')}`],
        ['/run/fail2ban/fail2ban.pid', pidFile],
      ],
      prepare: (include) => {
        for (const name of ['etc', 'etc/filter.d', 'etc/action.d']) mkdirSync(join(dir, name));
        writeFileSync(join(dir, 'app.log'), '');
        writeFileSync(join(config, 'jail.conf'), include);
        writeFileSync(
          join(config, 'fail2ban.conf'),
          `[Definition]
loglevel = INFO
logtarget = ${dir}/log
syslogsocket = auto
socket = ${socket}
pidfile = ${pidFile}
dbfile = None
dbpurgeage = 1d
dbmaxmatches = 10
`,
        );
      },
      ...runInGroup({
        argv: ['fail2ban-server', ...own, '-f', '-x', 'start'],
        log: join(dir, 'out'),
        isUp: async () => existsSync(socket) && (await control('ping'))?.includes('pong') === true,
      }),
      control,
      ask: async () => {
        const [count, regex] = [
          await control('get', 'site', 'maxretry'),
          await control('get', 'site', 'failregex'),
        ];
        if (count === undefined || !/^\d+$/.test(count)) return undefined;
        return regex?.includes('refused') === true ? `v${count}` : `v${count}+nothing`;
      },
    };
  },
};

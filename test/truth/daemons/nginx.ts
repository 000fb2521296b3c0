// nginx as master with two workers, with the site as policy, under a configuration like Debian's.
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon, Stage } from '../parts/daemon.js';
import { curl, runInGroup } from '../parts/processes.js';
import { stampPlaceholder } from '../parts/zones.js';

function site({ ports: [port] }: Stage, version: string, more = ''): string {
  return `# ${version}
server { listen 127.0.0.1:${port}; ${more} location = /stamp { return 200 "${stampPlaceholder}\\n"; } }\n`;
}

export const nginx: Daemon = {
  name: 'nginx',
  packages: ['nginx-light', 'curl'],
  programs: ['nginx', 'curl'],
  process: 'daemon',
  stamps: ['site.conf'],
  good: (version, stage) => ({ 'site.conf': site(stage, version) }),
  bad: (version, stage) => ({ 'site.conf': site(stage, version).replace('return', 'retrun') }),
  half: (version, stage) =>
    // The configuration is valid, but this host does not have the address.
    ({ 'site.conf': site(stage, version, 'listen 192.0.2.1:8099;') }),
  empty: { never: 'it reads its files only at a reload' },
  open: ({ dir, policy, ports: [port, statusPort] }) => {
    const [config, pidFile, logs] = [join(dir, 'nginx.conf'), join(dir, 'nginx.pid'), join(dir, 'logs')];
    const ask = (): Promise<string | undefined> => curl('-f', `http://127.0.0.1:${port}/stamp`);
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/etc/nginx/nginx.conf', config],
        ['unit: nginx.service', `pidFile: ${pidFile}`],
        ['/var/log/nginx', logs],
        ['http://127.0.0.1/', `http://127.0.0.1:${port}/`],
      ],
      prepare: (own) => {
        mkdirSync(logs);
        for (const name of ['error.log', 'access.log']) {
          writeFileSync(join(logs, name), '');
          // As in Debian, the worker processes may write the logs.
          chmodSync(join(logs, name), 0o666);
        }
        writeFileSync(
          config,
          `user www-data; worker_processes 2; daemon off;
error_log ${logs}/error.log;
include /etc/nginx/modules-enabled/*.conf;
events { worker_connections 768; }
http { include /etc/nginx/mime.types; access_log ${logs}/access.log;
server { listen 127.0.0.1:${statusPort}; return 204; }
${own}}\n`,
        );
      },
      ...runInGroup({
        argv: ['nginx', '-c', config, '-e', 'stderr', '-g', `pid ${pidFile};`],
        log: join(dir, 'log'),
        isUp: async () =>
          existsSync(pidFile) &&
          (await curl('-o', '/dev/null', '-w', '%{http_code}', `http://127.0.0.1:${statusPort}/`)) === '204',
      }),
      ask,
    };
  },
};

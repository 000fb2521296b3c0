// nginx as a master with two workers, whose site is the policy.
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon, Stage } from '../parts/daemon.js';
import { curl, life } from '../parts/processes.js';
import { stamped } from '../parts/zones.js';

function site({ ports: [port] }: Stage, version: string, more = ''): string {
  return `server { listen 127.0.0.1:${port}; ${more} location = /stamp { return 200 "${version}\\n"; } }\n`;
}

export const nginx: Daemon = {
  name: 'nginx',
  packages: ['nginx-light', 'curl'],
  programs: ['nginx', 'curl'],
  process: 'daemon',
  good: (version, stage) => stamped(version, { 'site.conf': site(stage, version) }),
  bad: (version, stage) =>
    stamped(version, { 'site.conf': site(stage, version).replace('return', 'retrun') }),
  half: (version, stage) =>
    // It parses; the address is nobody's here.
    stamped(version, { 'site.conf': site(stage, version, 'listen 192.0.2.1:8099;') }),
  empty: { never: 'it reads its files only at a reload' },
  open: ({ dir, policy, ports: [port, statusPort] }) => {
    const [config, pidFile] = [join(dir, 'nginx.conf'), join(dir, 'nginx.pid')];
    const ask = (): Promise<string | undefined> => curl('-f', `http://127.0.0.1:${port}/stamp`);
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/etc/nginx/nginx.conf', config],
        ['/run/nginx.pid', pidFile],
        ['http://127.0.0.1/', `http://127.0.0.1:${port}/`],
      ],
      prepare: (own) => {
        const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => {
          mkdirSync(join(dir, name));
          return `${name}_temp_path ${join(dir, name)};`;
        });
        writeFileSync(
          config,
          `worker_processes 2; daemon off;
events { worker_connections 64; }
http { access_log off; ${temporary.join(' ')}
server { listen 127.0.0.1:${statusPort}; return 204; }
${own}}\n`,
        );
      },
      ...life({
        argv: ['nginx', '-p', dir, '-c', config, '-e', 'stderr', '-g', `pid ${pidFile};`],
        log: join(dir, 'log'),
        isUp: async () =>
          existsSync(pidFile) &&
          (await curl('-o', '/dev/null', '-w', '%{http_code}', `http://127.0.0.1:${statusPort}/`)) === '204',
      }),
      ask,
    };
  },
};

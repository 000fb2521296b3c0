// squid as master and worker, with the version in the host name of its error pages.
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { curl, runInGroup } from '../parts/processes.js';
import { stampPlaceholder } from '../parts/zones.js';

function lines(version: string, more = ''): string {
  return `# ${version}\nvisible_hostname ${stampPlaceholder}.corp.test\n${more}http_access deny all\n`;
}

export const squid: Daemon = {
  name: 'squid',
  packages: ['squid', 'curl'],
  programs: ['squid', 'curl'],
  process: 'daemon',
  starts: 'after-policy',
  stamps: ['policy.conf'],
  good: (version) => ({ 'policy.conf': lines(version) }),
  bad: (version) => ({ 'policy.conf': lines(version, 'nonsense on\n') }),
  half: (version) => ({ 'policy.conf': lines(version, 'acl blocked dstdomain "/nonexistent"\n') }),
  empty: { never: 'it reads its files only at a reload' },
  open: ({ dir, policy, ports: [port] }) => {
    const [config, pidFile] = [join(dir, 'squid.conf'), join(dir, 'squid.pid')];
    const ask = async (): Promise<string | undefined> =>
      /Generated .* by (v\d+)\.corp\.test/.exec((await curl(`http://127.0.0.1:${port}/`)) ?? '')?.[1];
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/etc/squid/squid.conf', config],
        ['unit: squid.service', `pidFile: ${pidFile}`],
        ['127.0.0.1:3128', `127.0.0.1:${port}`],
      ],
      prepare: (own) => {
        mkdirSync(join(dir, 'core'));
        for (const name of [dir, join(dir, 'core')]) chmodSync(name, 0o777);
        writeFileSync(
          config,
          `http_port 127.0.0.1:${port}
pid_filename ${pidFile}
cache_log ${dir}/cache.log
access_log none
coredump_dir ${dir}/core
cache_mem 8 MB
shutdown_lifetime 0 seconds
pinger_enable off
${own}`,
        );
      },
      ...runInGroup({
        argv: ['squid', '--foreground', '-f', config],
        log: join(dir, 'log'),
        isUp: async () => existsSync(pidFile) && (await ask()) !== undefined,
      }),
      ask,
    };
  },
};

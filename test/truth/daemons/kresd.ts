// Knot Resolver 5: two workers on one port, with the sample configuration of docs/examples.
import { copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { sampleDirectory } from '../../kit/programs/real-kresd.js';
import type { Daemon } from '../parts/daemon.js';
import { dig, joinVersions, runInGroup } from '../parts/processes.js';

function rpz(version: string, between = ''): string {
  const address = `192.0.2.${version.slice(1)}`;
  return `$ORIGIN block.rpz.
$TTL 60
@ SOA ns. admin. ${version.slice(1)} 3600 600 86400 60
stamp.corp.test A ${address}
${between}last.corp.test A ${address}
`;
}

/** Enough queries to reach each of the two workers. */
const questions = 8;

export const kresd: Daemon = {
  name: 'kresd',
  packages: ['knot-resolver', 'bind9-dnsutils'],
  programs: ['kresd', 'dig'],
  process: 'daemon',
  good: (version) => ({ 'block.rpz': rpz(version) }),
  bad: (version) => ({ 'block.rpz': `nonsense\n${rpz(version)}` }),
  half: (version) => ({ 'block.rpz': rpz(version, 'bad A 192.0.2.999\n') }),
  empty: { never: 'its control socket evaluates any Lua: whoever has it has the process' },
  open: ({ dir, policy, ports: [port] }) => {
    const [config, run] = [join(dir, 'kresd.conf'), join(dir, 'run')];
    const check = join(dir, 'rpz-check.conf');
    const version = async (name: string): Promise<string | undefined> =>
      (await dig(port, name, 'A'))?.replace('192.0.2.', 'v');
    const worker = (id: string) => ({
      argv: ['kresd', '-n', '-c', config, run] as const,
      log: join(dir, `log${id}`),
      env: { DNS_PORT: String(port), SYSTEMD_INSTANCE: id, CACHE_DIR: join(dir, 'cache') },
      isUp: () => existsSync(join(run, 'control', id)),
    });
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['/etc/writ/rpz-check.conf', check],
        ['/run/knot-resolver/control', join(run, 'control')],
      ],
      prepare: (own) => {
        for (const name of [run, join(run, 'control'), join(dir, 'cache')]) mkdirSync(name);
        writeFileSync(config, own);
        copyFileSync(join(sampleDirectory, 'rpz-check.conf'), check);
      },
      ...runInGroup(worker('1'), worker('2')),
      ask: async () =>
        joinVersions(
          await Promise.all(
            Array.from({ length: questions }, (_, at) =>
              version(at % 2 === 0 ? 'stamp.corp.test' : 'last.corp.test'),
            ),
          ),
        ),
    };
  },
};

// Varnish, which responds to every request with the version.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { curl, runInGroup, stdoutOf } from '../parts/processes.js';
import { stampPlaceholder } from '../parts/zones.js';

function vcl(version: string, text: string, more = ''): string {
  return `vcl 4.1;
# ${version}
backend none none;
sub vcl_recv { ${more} return (synth(200, "${text}")); }
sub vcl_synth { set resp.body = resp.reason; return (deliver); }
`;
}

export const varnish: Daemon = {
  name: 'varnish',
  packages: ['varnish', 'curl', 'gcc', 'libc6-dev'],
  programs: ['varnishd', 'varnishadm', 'curl', 'gcc'],
  process: 'daemon',
  stamps: ['policy.vcl'],
  good: (version) => ({ 'policy.vcl': vcl(version, stampPlaceholder) }),
  bad: (version) => ({ 'policy.vcl': vcl(version, stampPlaceholder, 'nonsense;') }),
  half: { never: 'a VCL is compiled as a whole, or not at all' },
  empty: async (instance) => {
    await instance.control?.('vcl.use', 'boot');
  },
  open: ({ dir, ports: [port, adminPort] }) => {
    const [work, pidFile] = [join(dir, 'w'), join(dir, 'varnish.pid')];
    const control = (...args: string[]): Promise<string | undefined> =>
      stdoutOf('varnishadm', '-n', work, ...args);
    return {
      places: [
        ['varnishadm', `varnishadm -n ${work}`],
        ['unit: varnish.service', `pidFile: ${pidFile}`],
        ['http://127.0.0.1/', `http://127.0.0.1:${port}/`],
      ],
      prepare: () => {
        mkdirSync(work);
        writeFileSync(join(dir, 'boot.vcl'), vcl('none', 'nothing'));
      },
      ...runInGroup({
        argv: [
          ...(['varnishd', '-F', '-n', work, '-P', pidFile, '-j', 'none', '-s', 'malloc,8m'] as const),
          ...['-a', `127.0.0.1:${port}`, '-T', `127.0.0.1:${adminPort}`, '-f', join(dir, 'boot.vcl')],
        ],
        log: join(dir, 'log'),
        isUp: async () => (await control('status'))?.includes('running') === true,
      }),
      control,
      ask: async () => {
        const text = await curl('-f', `http://127.0.0.1:${port}/`);
        return text === 'nothing' ? undefined : text;
      },
    };
  },
};

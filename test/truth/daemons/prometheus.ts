// Prometheus with two rule files, each with one group that contains the version.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Daemon } from '../parts/daemon.js';
import { curl, joinVersions, runInGroup } from '../parts/processes.js';

function rules(part: string, version: string, expression = 'vector(1)'): string {
  return `groups:
  - name: ${part}-${version}
    rules:
      - { record: "policy:${part}", expr: "${expression}" }
`;
}

export const prometheus: Daemon = {
  name: 'prometheus',
  packages: ['prometheus', 'curl'],
  programs: ['prometheus', 'promtool', 'curl'],
  process: 'daemon',
  good: (version) => ({ 'first.yml': rules('first', version), 'last.yml': rules('last', version) }),
  bad: (version) => ({
    'first.yml': rules('first', version, '1 +'),
    'last.yml': rules('last', version, '1 +'),
  }),
  half: (version) => ({ 'first.yml': rules('first', version), 'last.yml': rules('last', version, '1 +') }),
  empty: { never: 'it reads its files only at a reload' },
  open: ({ dir, policy, ports: [port] }) => {
    const config = join(dir, 'prometheus.yml');
    const url = `http://127.0.0.1:${port}`;
    return {
      places: [
        ['/var/lib/writ/policy', policy],
        ['http://127.0.0.1:9090', url],
      ],
      prepare: (own) => writeFileSync(config, `global: { scrape_interval: 1h }\n${own}`),
      ...runInGroup({
        argv: [
          'prometheus',
          `--config.file=${config}`,
          `--storage.tsdb.path=${join(dir, 'data')}`,
          `--web.listen-address=127.0.0.1:${port}`,
          '--web.enable-lifecycle',
        ],
        log: join(dir, 'log'),
        isUp: async () => (await curl('-f', `${url}/-/ready`)) !== undefined,
      }),
      ask: async () => {
        const text = await curl('-f', `${url}/api/v1/rules`);
        const part = (name: string): string | undefined =>
          new RegExp(`"${name}-(v\\d+)"`).exec(text ?? '')?.[1];
        return joinVersions([part('first'), part('last')]);
      },
    };
  },
};

// CrowdStrike, 2024-07-19: the validator accepts 21 fields, the reader has twenty, and the worker ends at each load and at each start.
import { needs } from '../../kit/programs/real-programs.js';
import type { Outage } from '../stage/outage.js';
import type { BundleFiles } from '../stage/outage-host.js';
import { workerProgram } from '../stage/supervisors.js';
import { replaySupervised } from './supervised-row.js';

export function templateOf(version: string, fieldCount: number): BundleFiles {
  const fields = Array.from({ length: fieldCount }, () => '*');
  return { 'template.json': JSON.stringify({ version, fields }) };
}

/** The check that accepts one field more than the reader has. */
export const templateCheck = `    checks:
      - name: the template is valid
        run: [${process.execPath}, ${workerProgram('validate-template')}, "{bundle}/template.json"]
`;

export const crowdstrike: Outage = {
  name: 'crowdstrike',
  title: 'CrowdStrike, 2024-07-19',
  mechanism: 'the validator accepts 21 fields, the reader has 20: crash at load and at each start',
  supervisor: 'supervisord, HUP',
  missing: () => needs('supervisord', 'supervisor').skip,
  replay: (options) =>
    replaySupervised(options, {
      bundle: 'sensor',
      yaml: ({ supervisor }) => `bundles:
  - name: sensor
    bake: { for: 10s }
${templateCheck}workers:
  - name: sensor
    uses: [sensor]
    reset: { supervisord: ${supervisor}, group: sensor, signal: HUP }
    onDead: restart
`,
      command: ({ socket }, { current }) => [
        process.execPath,
        workerProgram('sensor'),
        `${current}/sensor/template.json`,
        socket,
      ],
      first: templateOf('290', 20),
      expected: { old: '290', happened: ['WORKER_DIED'], maxAwaySeconds: 15 },
      act: async ({ host, watch, untilServes }) => {
        await host.publish(templateOf('291', 21));
        await host.waits(20_000, () => watch.now().answers[0] !== '290');
        await untilServes('290', 40_000);
      },
    }),
};

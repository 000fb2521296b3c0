// Azure Front Door, 2025-10-29: a configuration is accepted everywhere, a task that runs later ends the process, and by then the next bad
// one had become the "last known good". Here two bad releases are accepted before the first crash.
import { needs } from '../../kit/programs/real-programs.js';
import type { Outage } from '../stage/outage.js';
import type { BundleFiles } from '../stage/outage-host.js';
import { workerProgram } from '../stage/supervisors.js';
import { replaySupervised } from './supervised-row.js';

const taskDelayMs = 6000;

function configOf(version: string, routes: readonly string[] | null): BundleFiles {
  return { 'config.json': JSON.stringify({ version, tenants: [{ routes }] }), version };
}

export const azureFrontDoor: Outage = {
  name: 'azure-front-door',
  title: 'Azure Front Door, 2025-10-29',
  mechanism:
    'accepted and confirmed; a crash in asynchronous work later, when a second bad release is active',
  supervisor: 'supervisord, HUP, a probe',
  missing: () => needs('supervisord', 'supervisor').skip,
  replay: (options) =>
    replaySupervised(options, {
      bundle: 'edge',
      yaml: ({ supervisor, socket }) => `bundles:
  - name: edge
    bake: { for: 20s }
workers:
  - name: edge
    uses: [edge]
    reset: { supervisord: ${supervisor}, group: edge, signal: HUP }
    probe: { run: [${process.execPath}, ${workerProgram('ask-version')}, ${socket}, "{bundle}/version"], timeout: 5s }
    onDead: restart
`,
      command: ({ socket }, { current }) => [
        ...[process.execPath, workerProgram('edge')],
        ...[`${current}/edge/config.json`, socket, String(taskDelayMs)],
      ],
      first: configOf('config-1', ['/a']),
      expected: { old: 'config-1', happened: ['BAKE_FAILED (WORKER_DIED)'], maxAwaySeconds: 60 },
      act: async ({ host, watch, report, untilServes }) => {
        const isServed = (text: string) => host.waits(10_000, () => watch.now().answers[0] === text);
        await host.publish(configOf('config-2', null));
        await isServed('config-2');
        await host.publish(configOf('config-3', null));
        await isServed('config-3');
        report('two bad releases are accepted and confirmed');
        await untilServes('config-1', 90_000);
      },
    }),
};

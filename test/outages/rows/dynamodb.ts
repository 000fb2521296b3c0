// AWS DynamoDB, 2025-10-20: a stalled worker of the publisher applies an old plan after newer ones, and a clean-up deletes the
// active one. Here an old copy of the repository replaces the current one, and then a clean-up publishes a bundle without the
// plan.
import { cpSync, rmSync } from 'node:fs';
import { needs } from '../../kit/programs/real-programs.js';
import type { Outage } from '../stage/outage.js';
import { workerProgram } from '../stage/supervisors.js';
import { replaySupervised } from './supervised-row.js';

export const dynamodb: Outage = {
  name: 'dynamodb',
  title: 'AWS DynamoDB, 2025-10-20',
  mechanism: 'an old plan is applied after newer ones; a clean-up publishes without the active plan',
  supervisor: 'supervisord, HUP',
  missing: () => needs('supervisord', 'supervisor').skip,
  replay: async (options) => {
    const refusals: string[] = [];
    const replayed = await replaySupervised(options, {
      bundle: 'plan',
      yaml: ({ supervisor }) => `bundles:
  - name: plan
    bake: { for: 10s }
    checks:
      - { name: no plan disappears, change: { removed: 50%, files: [plan] } }
workers:
  - name: plan
    uses: [plan]
    reset: { supervisord: ${supervisor}, group: plan, signal: HUP }
`,
      command: ({ socket }, { current }) => [
        process.execPath,
        workerProgram('plan'),
        `${current}/plan/plan`,
        socket,
      ],
      first: { plan: 'plan-1\n' },
      expected: {
        old: 'plan-3',
        happened: ['METADATA_ROLLBACK', 'CHECK_FAILED'],
        maxAwaySeconds: 0,
      },
      settled: 'plan-1',
      before: async ({ host, untilServes }) => {
        cpSync(host.repository, options.dir.join('old-repo'), { recursive: true });
        await host.publish({ plan: 'plan-2\n' });
        await host.publish({ plan: 'plan-3\n' });
        await untilServes('plan-3', 30_000);
        cpSync(host.repository, options.dir.join('live-repo'), { recursive: true });
      },
      act: async ({ host, report }) => {
        const replaceRepository = (by: string): void => {
          rmSync(`${host.repository}/metadata`, { recursive: true });
          cpSync(`${options.dir.join(by)}/metadata`, `${host.repository}/metadata`, { recursive: true });
        };
        replaceRepository('old-repo');
        const hasFound = async (code: string): Promise<boolean> =>
          JSON.stringify(await host.history()).includes(code);
        await host.waits(30_000, () => hasFound('METADATA_ROLLBACK'));
        report('the old plan was offered, and the host refused it');
        replaceRepository('live-repo');
        const cleaned = { other: 'nothing\n' };
        const source = host.source(cleaned);
        const { exitCode, text } = await host.publisher('publish', source, '--bundle', 'plan');
        if (exitCode !== 3 || !text.includes('CHANGE_TOO_LARGE'))
          refusals.push(`writ publish without the plan exited with ${exitCode}, not with 3`);
        await host.publish(cleaned, '--accept-change');
        await host.waits(30_000, () => hasFound('CHECK_FAILED'));
        report('the clean-up was refused at the publisher, and then by the check of the host');
        await host.waits(3000, () => false);
      },
    });
    return { ...replayed, complaints: [...replayed.complaints, ...refusals] };
  },
};

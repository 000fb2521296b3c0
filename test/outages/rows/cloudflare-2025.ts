// Cloudflare, 2025-11-18: every five minutes a generated list, good or bad by chance. A bad one is twice as long as the worker's hard
// limit allows. Here five seconds, which is half of the bake time, as five minutes are of the default.
import { needs } from '../../kit/programs/real-programs.js';
import { awaySeconds } from '../rules/judge.js';
import type { Outage, Replayed } from '../stage/outage.js';
import type { BundleFiles } from '../stage/outage-host.js';
import { workerProgram } from '../stage/supervisors.js';
import { type RowScene, replaySupervised } from './supervised-row.js';

const readDelayMs = 1000;

function featuresOf(version: string, count: number): BundleFiles {
  const names = Array.from({ length: count }, (_, index) => `feature_${index}`);
  return { 'features.txt': `${[version, ...names].join('\n')}\n` };
}

const good = 120;
const doubled = 2 * good;

/** Without this flag the publisher refuses the next good list, which has half of the bytes. */
const mayShrink = ['--max-removed', '60%'] as const;

/** @returns the seconds from its activation until the list that had settled was served again */
async function publishBad({ host, watch, untilServes }: RowScene, version: string): Promise<number> {
  const count = watch.samples.length;
  await host.publish(featuresOf(version, doubled));
  await host.waits(20_000, () => watch.samples.slice(count).some(({ answers }) => answers[0] === undefined));
  await untilServes('file-1', 40_000);
  return awaySeconds(watch.samples.slice(count - 1), 'file-1') ?? 0;
}

export const cloudflare2025: Outage = {
  name: 'cloudflare-2025',
  title: 'Cloudflare, 2025-11-18',
  mechanism: 'a generated list doubles over a hard limit; good and bad lists take turns',
  supervisor: 'supervisord, HUP',
  missing: () => needs('supervisord', 'supervisor').skip,
  replay: async (options): Promise<Replayed> => {
    const away: number[] = [];
    const replayed = await replaySupervised(options, {
      bundle: 'scorer',
      yaml: ({ supervisor }) => `bundles:
  - name: scorer
    bake: { for: 10s }
workers:
  - name: scorer
    uses: [scorer]
    reset: { supervisord: ${supervisor}, group: scorer, signal: HUP }
    onDead: restart
`,
      command: ({ socket }, { current }) => [
        ...[process.execPath, workerProgram('scorer')],
        ...[`${current}/scorer/features.txt`, socket, String(readDelayMs)],
      ],
      first: featuresOf('file-1', good),
      expected: {
        old: 'file-1',
        atEnd: 'file-5',
        happened: ['rolled-back BAKE_FAILED (WORKER_DIED)', 'BAKE_GAP'],
        maxAwaySeconds: 120,
      },
      act: async (scene) => {
        const { host, report, untilServes } = scene;
        away.push(await publishBad(scene, 'file-2'));
        report('file-2 was bad, and the host went back');
        await host.publish(featuresOf('file-3', good), ...mayShrink);
        await untilServes('file-3', 20_000);
        away.push(await publishBad(scene, 'file-4'));
        report('file-4 was bad, and the host went back to the list that had settled');
        await host.publish(featuresOf('file-5', good), ...mayShrink);
        await host.waits(5000, () => false);
        report('file-5 waits for the gap after two restores, and a person takes it at once');
        await host.pullForced();
        await untilServes('file-5', 30_000);
      },
    });
    return { ...replayed, awaySeconds: Math.max(...away) };
  },
};

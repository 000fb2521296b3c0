// Google Cloud, 2025-06-12: a policy with a blank field reaches code that no policy had reached before. All workers end within
// a second, repeatedly, and restart at once. Only their pid files show that they were replaced.
import { mkdirSync } from 'node:fs';
import { judgeReplay } from '../rules/judge.js';
import type { Outage, Replayed, ReplayOptions } from '../stage/outage.js';
import { type BundleFiles, outageHost } from '../stage/outage-host.js';
import { allOf, startShellLoop, workerProgram } from '../stage/supervisors.js';

const workers = ['a', 'b', 'c'] as const;

function quotasOf(version: string, limit: object | undefined): BundleFiles {
  return { 'quotas.json': JSON.stringify({ version, quotas: [{ project: 'p1', limit }] }) };
}

async function replay(options: ReplayOptions): Promise<Replayed> {
  const { dir, report } = options;
  const pids = dir.join('pids');
  mkdirSync(pids);
  await using host = await outageHost(options, {
    bundle: 'quotas',
    yaml: `bundles:
  - name: quotas
    bake: { for: 45s }
    checks:
      - { name: the policy is JSON, parse: ["*.json"] }
workers:
  - name: control
    uses: [quotas]
    reset: { signal: HUP, pidFile: "${pids}/*.pid", min: 2 }
`,
  });
  await host.publish(quotasOf('policy-1', { perMinute: 60 }));
  await host.startAgent();
  await host.untilActive();
  await using _loops = allOf(
    workers.map((name) => {
      const args = [`${host.current}/quotas/quotas.json`, dir.join(`${name}.sock`), `${pids}/${name}.pid`];
      return startShellLoop(dir.path, [process.execPath, workerProgram('quota'), ...args]);
    }),
  );
  await host.untilSettled();
  report('release 1 has settled, and three workers serve it');
  await using watch = await host.watch(workers.map((name) => dir.join(`${name}.sock`)));
  const isOld = (): boolean => watch.now().answers.every((one) => one === 'policy-1');
  if (!isOld()) throw new Error('not all workers serve the first policy');
  await host.publish(quotasOf('policy-2', undefined));
  await host.waits(20_000, () => !isOld());
  await host.waits(120_000, () => isOld() && performance.now() - watch.now().atMs > 4000);
  return judgeReplay(
    { samples: watch.samples, history: await host.history() },
    {
      old: 'policy-1',
      happened: ['rolled-back BAKE_FAILED (WORKER_DIED)'],
      maxAwaySeconds: 90,
    },
  );
}

export const googleCloud: Outage = {
  name: 'google-cloud',
  title: 'Google Cloud, 2025-06-12',
  mechanism: 'a blank field meets code that was never exercised: three workers crash in a loop at once',
  supervisor: 'a shell loop and pid files, HUP',
  missing: () => undefined,
  replay,
};

// Cloudflare, 2019-07-02: a rule with a regular expression that backtracks. The worker stays alive, uses a whole processor,
// and hardly responds.

import { judgeReplay } from '../rules/judge.js';
import type { Outage, Replayed, ReplayOptions } from '../stage/outage.js';
import { type BundleFiles, outageHost } from '../stage/outage-host.js';
import { startShellLoop, workerProgram } from '../stage/supervisors.js';

const trafficDelayMs = 4000;

function rulesOf(version: string, pattern: string): BundleFiles {
  return { 'rules.txt': `${version}\n${pattern}\n`, version };
}

async function replay(options: ReplayOptions): Promise<Replayed> {
  const { dir, report } = options;
  const [socket, admin] = [dir.join('waf.sock'), dir.join('admin.sock')];
  await using host = await outageHost(options, {
    bundle: 'waf',
    yaml: `bundles:
  - name: waf
    bake: { for: 20s }
workers:
  - name: waf
    uses: [waf]
    reset: { http: { unix: ${admin}, path: /reload }, timeout: 5s }
    probe:
      run: [${process.execPath}, ${workerProgram('ask-version')}, ${socket}, "{bundle}/version"]
      timeout: 1s
`,
  });
  await host.publish(rulesOf('rules-1', '<script>'));
  await host.startAgent();
  await host.untilActive();
  const args = [`${host.current}/waf/rules.txt`, socket, admin, String(trafficDelayMs)];
  await using _loop = startShellLoop(dir.path, [process.execPath, workerProgram('waf'), ...args]);
  await host.untilSettled();
  report('release 1 has settled');
  await using watch = await host.watch([socket]);
  await host.publish(rulesOf('rules-2', '^(x+x+)+y$'));
  await host.waits(20_000, () => watch.now().answers[0] === undefined);
  report('the worker uses a whole processor and does not answer in time');
  const isBack = ({ answers, atMs }: ReturnType<typeof watch.now>): boolean =>
    answers[0] === 'rules-1' && performance.now() - atMs > 8000;
  await host.waits(150_000, () => isBack(watch.now()));
  return judgeReplay(
    { samples: watch.samples, history: await host.history() },
    { old: 'rules-1', happened: ['BAKE_FAILED (PROBE_FAILED)'], maxAwaySeconds: 120 },
  );
}

export const cloudflare2019: Outage = {
  name: 'cloudflare-2019',
  title: 'Cloudflare, 2019-07-02',
  mechanism:
    'a regular expression backtracks: the processor is used up, the worker lives, its probe gets no answer in time',
  supervisor: 'a shell loop, reload over HTTP',
  missing: () => undefined,
  replay,
};

// `writ pull --settled` as a pipeline runs it on a host: with an agent, without an agent, and with a worker that a release kills.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { readOfflineStatus } from '../../../src/agent/control/offline-status.js';
import { createStandaloneBakeRound } from '../../../src/agent/control/standalone-bake-round.js';
import { readStatusFile } from '../../../src/agent/report/status-file.js';
import type { Bake, Ledger } from '../../../src/agent/state/ledger.js';
import { sealed, unsealed } from '../../../src/agent/state/sealed-json.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import type { BakeStatus } from '../../../src/core/status/status.js';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';
import { serveDirectory } from '../../kit/net/serve-repository.js';

/** A host before the pull of release 2 of `dns-edge`, with this bake time. */
function bakingFor(installed: InstalledHost, time: string): InstalledHost {
  const host = copyHost(installed);
  host.configure({ bundles: [{ name: 'dns-edge', bake: { for: time } }] });
  return host;
}

describe('writ pull --settled', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('waits until the agent has observed the bake time, and exits 0', longCase, async () => {
    using host = bakingFor(installed, '3s');
    await using agent = startWrit(['agent', '--config', host.config]);
    await agent.waitForStderr(/"state":"run"/);
    const run = await host.writ('pull', '--settled', '--wait', '2m', '--json');
    const { outcome, releases, pull } = jsonOf(run);
    assert.deepEqual([run.exitCode, outcome], [0, 'settled'], run.stdout);
    assert.deepEqual(releases, [{ bundle: 'dns-edge', serial: 2, state: 'settled' }]);
    const { outcome: outcomeOfPull, exitCode } = pull as { outcome: string; exitCode: number };
    assert.deepEqual([outcomeOfPull, exitCode], ['activated', 0]);
  });

  it('observes the bake time itself when no agent runs', async () => {
    // The first observation may begin late on a slow machine: after three bake times the release settles unobserved.
    using host = bakingFor(installed, '5s');
    const run = await host.writ('pull', '--settled', '--wait', '2m');
    assert.equal(run.exitCode, 0, run.stdout + run.stderr);
    assert.match(run.stdout, /^SETTLED {2}dns-edge 2 settled$/m);
    assert.match((await host.writ('history')).stdout, /settled: dns-edge 2/);
  });

  it('exits 8 when its deadline is earlier', longCase, async () => {
    using host = bakingFor(installed, '1h');
    const run = await host.writ('pull', '--settled', '--wait', '1s', '--json');
    const { outcome, releases } = jsonOf(run);
    assert.deepEqual([run.exitCode, outcome], [8, 'baking'], run.stdout);
    assert.equal((releases as { state: string }[])[0]?.state, 'baking');
  });

  it('exits with the code of a rejected pull, also with --wait', async () => {
    using host = copyHost(installed);
    host.configure({ bundles: [{ name: 'dns-edge', checks: [{ name: 'never', run: ['false'] }] }] });
    const run = await host.writ('pull', '--settled', '--wait', '1s', '--json');
    assert.deepEqual([run.exitCode, jsonOf(run)['outcome']], [3, 'rejected'], run.stdout);
  });

  it('does not wait for an older release when the pull is deferred, and reports it', async () => {
    using host = bakingFor(installed, '1h');
    await host.writ('pause', '--reason', 'test');
    const run = await host.writ('pull', '--settled', '--wait', '1s', '--json');
    const { outcome, releases, pull } = jsonOf(run);
    assert.deepEqual([run.exitCode, outcome], [8, 'deferred'], run.stdout);
    const [release] = releases as { serial: number; state: string }[];
    assert.deepEqual([release?.serial, release?.state], [1, 'baking']);
    assert.equal((pull as { outcome: string }).outcome, 'deferred');
    assert.match((await host.writ('pull', '--settled')).stdout, /^ {2}not waited for: dns-edge 1 bakes, /m);
  });

  it('does not wait with --no-bake', async () => {
    using host = bakingFor(installed, '1h');
    const run = await host.writ('pull', '--force', '--no-bake', '--settled');
    assert.equal(run.exitCode, 2, run.stdout);
  });
});

/** A daemon that survives HUP. */
async function startDaemon(pidFile: string): Promise<ChildProcess> {
  const script = 'trap : HUP; echo ready; while :; do sleep 0.1; done';
  const daemon = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  // A signal of Writ before its trap is set would end it.
  await once(daemon.stdout, 'data');
  writeFileSync(pidFile, `${daemon.pid}\n`);
  return daemon;
}

async function kill(daemon: ChildProcess): Promise<void> {
  daemon.kill('SIGKILL');
  await once(daemon, 'exit');
}

describe('a bake time without an agent', () => {
  const signalled = (pidFile: string) => ({
    name: 'd',
    uses: ['dns-edge'],
    reset: { signal: 'HUP', pidFile },
  });
  /** Pulls without the worker, and again with it. */
  const cases = [
    ['that reads files by itself', () => []],
    ['of a command', () => [{ name: 'd', uses: ['dns-edge'], reset: { run: ['true'], confirms: true } }]],
    ['that came after the first pull', (pidFile: string) => [signalled(pidFile)]],
  ] as const;

  for (const [name, workersOf] of cases)
    it(`waits for an agent after a pull, with a worker ${name}`, async () => {
      using host = await installHost();
      const pidFile = host.dir.join('run', 'd.pid');
      host.configure({
        bundles: [{ name: 'dns-edge', bake: { for: '1h' } }],
        workers: workersOf(pidFile),
      });
      await host.writ('pull', '--json');
      const daemon = await startDaemon(pidFile);
      try {
        await host.writ('pull', '--json');
        const status = await host.writ('status');
        assert.match(status.stdout, /baking, waits/);
        assert.match(status.stdout, /bake time dns-edge 2 waits for an agent that observes this host/);
        assert.match(status.stdout, /^Next: writ agent --config /m);
        const health = await host.writ('health');
        assert.match(health.stdout, /no agent runs, .*the bake time of dns-edge does not pass \[NO_AGENT\]/);
      } finally {
        await kill(daemon);
      }
    });
});

/** One observation by a command without earlier ones, so that each probe is due. */
function observeOnce(host: InstalledHost) {
  const observeStandalone = createStandaloneBakeRound();
  const { signal } = new AbortController();
  return observeStandalone({ configPath: host.config, by: 'test', version: '0.0.0', signal });
}

function readLedger(host: InstalledHost): Ledger {
  return unsealed(readFileSync(join(host.paths.state, 'ledger.json'), 'utf8')) as Ledger;
}

function bakeOf(host: InstalledHost): Bake {
  const bake = readLedger(host).bakes?.['dns-edge'];
  assert.ok(bake);
  return bake;
}

function changeBake(host: InstalledHost, change: (bake: Bake) => Bake): void {
  const bakes = { 'dns-edge': change(bakeOf(host)) };
  writeFileSync(join(host.paths.state, 'ledger.json'), sealed({ ...readLedger(host), bakes }));
}

/** Moves the last wrong answer back by a tenth of the bake time. */
function makeProbeDue(host: InstalledHost): void {
  const path = join(host.paths.state, 'ledger.json');
  const ledger = unsealed(readFileSync(path, 'utf8')) as Ledger;
  const workers = Object.entries(ledger.workers).map(([key, { probed, ...worker }]) => {
    assert.ok(probed?.wrongAtMs);
    return [key, { ...worker, probed: { ...probed, wrongAtMs: probed.wrongAtMs - 360_000 } }] as const;
  });
  writeFileSync(path, sealed({ ...ledger, workers: Object.fromEntries(workers) }));
}

async function activeSerial(host: InstalledHost): Promise<number | undefined> {
  const [bundle] = jsonOf(await host.writ('status', '--json'))['bundles'] as { serial: number }[];
  return bundle?.serial;
}

describe('a pull without an agent', () => {
  it('does not observe the bake time of a group with a probe, which it does not run', async () => {
    using host = await installHost();
    const worker = { name: 'd', uses: ['dns-edge'], reset: { run: ['true'] }, probe: { run: ['true'] } };
    host.configure({ bundles: [{ name: 'dns-edge', bake: { for: '1s' } }], workers: [worker] });
    await host.writ('pull', '--json');
    changeBake(host, ({ startedAtMs, seenAtMs, ...bake }) => {
      return { ...bake, startedAtMs: startedAtMs - 30_000, seenAtMs: seenAtMs - 30_000 };
    });
    await host.writ('pull', '--json');
    const [bundle] = jsonOf(await host.writ('status', '--json'))['bundles'] as {
      bake: Partial<BakeStatus>;
    }[];
    const { state, observed } = bundle?.bake ?? {};
    assert.deepEqual([state, observed], ['settled', false]);
  });
});

describe('an observation without an agent', () => {
  it('runs a probe, and rolls back a release that fails it six times in a row', async () => {
    using host = await installHost();
    const bad = host.dir.join('bad');
    const notified = host.dir.join('notified');
    const policy = join(host.paths.current, 'dns-edge', 'block.rpz');
    const worker = {
      ...{ name: 'd', uses: ['dns-edge'] },
      reset: { run: ['sh', '-c', `echo >> ${notified}`] },
      probe: { run: ['sh', '-c', `! test -e ${bad} || ! grep -q 2 ${policy}`], deadline: '1s' },
    };
    host.configure({ bundles: [{ name: 'dns-edge', bake: { for: '1h' } }], workers: [worker] });
    const pulled = await host.writ('pull', '--json');
    assert.equal(jsonOf(pulled)['outcome'], 'activated', pulled.stdout);
    const before = readFileSync(notified, 'utf8').length;
    writeFileSync(bad, '');
    for (let rounds = 0; rounds < 5; rounds += 1) {
      await observeOnce(host);
      await observeOnce(host);
      assert.equal(await activeSerial(host), 2);
      makeProbeDue(host);
    }
    assert.equal(readFileSync(notified, 'utf8').length, before + 1, 'notified once more after the third');
    await observeOnce(host);
    assert.equal(await activeSerial(host), 1);
    assert.match((await host.writ('history')).stdout, /2 -> 1 +rolled-back .*PROBE_FAILED/);
  });

  it('runs a probe no more often than an agent does', async () => {
    using host = await installHost();
    const asked = host.dir.join('asked');
    const probe = { run: ['sh', '-c', `echo >> ${asked}`] };
    const worker = { name: 'd', uses: ['dns-edge'], reset: { run: ['true'] }, probe };
    host.configure({ bundles: [{ name: 'dns-edge', bake: { for: '1h' } }], workers: [worker] });
    await host.writ('pull', '--json');
    const before = readFileSync(asked, 'utf8').length;
    const observeStandalone = createStandaloneBakeRound();
    const { signal } = new AbortController();
    for (let rounds = 0; rounds < 3; rounds += 1)
      await observeStandalone({ configPath: host.config, by: 'test', version: '0.0.0', signal });
    assert.equal(readFileSync(asked, 'utf8').length, before + 1);
  });

  it('observes the time since the previous call of the same command, and none before the first', async () => {
    using host = await installHost();
    host.configure({ bundles: [{ name: 'dns-edge', bake: { for: '1h' } }] });
    await host.writ('pull', '--json');
    const observeStandalone = createStandaloneBakeRound();
    const { signal } = new AbortController();
    const observed: number[] = [];
    for (let rounds = 0; rounds < 3; rounds += 1) {
      await observeStandalone({ configPath: host.config, by: 'test', version: '0.0.0', signal });
      observed.push(bakeOf(host).observedMs);
    }
    const [first, second = 0, third = 0] = observed;
    assert.equal(first, 0);
    assert.ok(second > 0 && third > second, observed.join());
  });

  it('shows in status and health that the bake time passes, until 30 s after it', async () => {
    using host = await installHost();
    host.configure({ bundles: [{ name: 'dns-edge', bake: { for: '1h' } }] });
    await host.writ('pull', '--json');
    await observeOnce(host);
    const { untilMs = 0 } =
      readStatusFile({ status: host.dir.join('run', 'status.json') })?.observation ?? {};
    const healthAt = async (nowMs: number) => {
      const clock = { nowMs: () => nowMs };
      const report = await readOfflineStatus({ configPath: host.config, version: '0.0.0', clock });
      const [finding] = judgeHostHealth(report).findings.filter(({ code }) => code === 'NO_AGENT');
      return [report.bundles[0]?.bake?.waitsFor?.what, finding?.text.includes('does not pass')];
    };
    assert.deepEqual(await healthAt(untilMs - 1), [undefined, false]);
    assert.deepEqual(await healthAt(untilMs), ['agent', true]);
    assert.deepEqual(await healthAt(untilMs - 30_001), ['agent', true], 'the clock was set back');
  });

  it('checks the server of bake.contact, rolls back a release without contact, and holds it', async () => {
    using host = await installHost();
    const isCutOff = () =>
      readFileSync(join(host.paths.current, 'dns-edge', 'block.rpz'), 'utf8').includes('2');
    await using server = await serveDirectory(host.repository, (_, response) => {
      if (isCutOff()) response.destroy();
      return isCutOff();
    });
    host.configure({
      repository: server.url,
      bundles: [{ name: 'dns-edge', bake: { for: '1h', contact: 'repository' } }],
    });
    const pulled = await host.writ('pull', '--json');
    assert.equal(jsonOf(pulled)['outcome'], 'activated', pulled.stdout);
    // Three attempts have failed by now, and it is time for the last one.
    changeBake(host, (bake) => {
      assert.deepEqual(bake.contact, { failed: 0, hadContact: true, tries: 0 });
      return { ...bake, startedAtMs: bake.startedAtMs - 61_000, contact: { ...bake.contact, failed: 3 } };
    });
    await observeOnce(host);
    assert.equal(await activeSerial(host), 1);
    const { stdout } = await host.writ('status');
    assert.match(stdout, /CONTACT_LOST +contact lost after dns-edge 2; serial 2 is held/);
    assert.match((await host.writ('history')).stdout, /2 -> 1 +rolled-back .*CONTACT_LOST/);
  });

  it('leaves a bake time to an agent when only a connection to the agent shows the workers', async () => {
    using host = await installHost();
    host.configure({
      bundles: [{ name: 'dns-edge', bake: { for: '1s' } }],
      workers: [{ name: 'n', uses: ['dns-edge'], reset: { native: 'n', min: 0 } }],
    });
    await host.writ('pull', '--json');
    const { waits } = await observeOnce(host);
    assert.deepEqual(waits, new Map([['dns-edge', { what: 'agent' }]]));
    assert.match((await host.writ('status')).stdout, /waits for an agent/);
    const run = await host.writ('pull', '--settled', '--wait', '1m');
    assert.equal(run.exitCode, 0, run.stdout);
    assert.match(run.stdout, /^SETTLED {2}dns-edge 2 settled, but its bake time was not observed$/m);
  });

  it('rolls back a release when its worker is replaced repeatedly', longCase, async () => {
    using host = await installHost();
    const pidFile = host.dir.join('run', 'd.pid');
    const worker = { name: 'd', uses: ['dns-edge'], reset: { signal: 'HUP', pidFile } };
    host.configure({
      bundles: [{ name: 'dns-edge', bake: { for: '1h', restarts: 0 } }],
      workers: [worker],
    });
    const observe = () => observeOnce(host);
    let daemon = await startDaemon(pidFile);
    try {
      const pulled = await host.writ('pull', '--json');
      assert.equal(jsonOf(pulled)['outcome'], 'activated', pulled.stdout);
      for (let kills = 0; kills < 4; kills += 1) {
        await observe();
        await kill(daemon);
        daemon = await startDaemon(pidFile);
      }
      await observe();
    } finally {
      await kill(daemon);
    }
    const status = jsonOf(await host.writ('status', '--json'));
    const [bundle] = status['bundles'] as { serial: number }[];
    assert.equal(bundle?.serial, 1);
    const history = await host.writ('history');
    assert.match(history.stdout, /2 -> 1 +rolled-back .*WORKER_DIED/);
  });
});

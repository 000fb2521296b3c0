// `writ pull --settled` as a pipeline runs it on a host: with an agent, without one, and with a worker that a release kills.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { lookAlone } from '../../../src/agent/control/without-agent.js';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';

/** A host with release 2 of `dns-edge` unpulled, and this bake time. */
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

  it('waits for the agent to have observed the bake time, and ends with 0', async () => {
    using host = bakingFor(installed, '3s');
    await using agent = startWrit(['agent', '--config', host.config]);
    await agent.waitForStderr(/"state":"run"/);
    const run = await host.writ('pull', '--settled', '--wait', '2m', '--json');
    const { outcome, releases, pull } = jsonOf(run);
    assert.deepEqual([run.exitCode, outcome], [0, 'settled'], run.stdout);
    assert.deepEqual(releases, [{ bundle: 'dns-edge', serial: 2, state: 'settled' }]);
    assert.deepEqual(pull, { outcome: 'activated', exitCode: 0 });
  });

  it('observes the bake time itself where no agent runs', async () => {
    using host = bakingFor(installed, '2s');
    const run = await host.writ('pull', '--settled', '--wait', '2m');
    assert.equal(run.exitCode, 0, run.stdout + run.stderr);
    assert.match(run.stdout, /^SETTLED {2}dns-edge 2 settled$/m);
  });

  it('ends with 8 when its time is over first', async () => {
    using host = bakingFor(installed, '1h');
    const run = await host.writ('pull', '--settled', '--wait', '1s', '--json');
    const { outcome, releases } = jsonOf(run);
    assert.deepEqual([run.exitCode, outcome], [8, 'baking'], run.stdout);
    assert.equal((releases as { state: string }[])[0]?.state, 'baking');
  });

  it('has nothing to wait for beside --no-bake', async () => {
    using host = bakingFor(installed, '1h');
    const run = await host.writ('pull', '--force', '--no-bake', '--settled');
    assert.equal(run.exitCode, 2, run.stdout);
  });
});

/** A daemon that survives HUP. */
async function startDaemon(pidFile: string): Promise<ChildProcess> {
  const script = 'trap : HUP; echo ready; while :; do sleep 0.1; done';
  const daemon = spawn('sh', ['-c', script], { stdio: ['ignore', 'pipe', 'ignore'] });
  // Before its trap is set, a signal of Writ would end it.
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
  /** Pulls while the worker is not there, and again when it is. */
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

describe('a look without an agent', () => {
  it('takes back a release whose worker is replaced again and again', async () => {
    using host = await installHost();
    const pidFile = host.dir.join('run', 'd.pid');
    const worker = { name: 'd', uses: ['dns-edge'], reset: { signal: 'HUP', pidFile } };
    host.configure({
      bundles: [{ name: 'dns-edge', bake: { for: '1h', restarts: 0 } }],
      workers: [worker],
    });
    const look = () =>
      lookAlone({
        ...{ configPath: host.config, by: 'test', version: '0.0.0' },
        signal: new AbortController().signal,
      });
    let daemon = await startDaemon(pidFile);
    try {
      const pulled = await host.writ('pull', '--json');
      assert.equal(jsonOf(pulled)['outcome'], 'activated', pulled.stdout);
      for (let kills = 0; kills < 4; kills += 1) {
        await look();
        await kill(daemon);
        daemon = await startDaemon(pidFile);
      }
      await look();
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

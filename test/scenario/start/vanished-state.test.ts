// A state directory that is unmounted, emptied or replaced within one boot, with an agent and without one: nothing is written in
// its place, and no older release becomes active. An upgrade, a restored backup and a reboot are no alarm.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { statusLabel } from '../../../src/cli/show/show-status.js';
import type { WritError } from '../../../src/core/errors.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { agentSite } from '../../kit/agent/agent-in-process.js';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { runWrit } from '../../kit/cli/run-writ.js';
import { needsMounts, runMounted } from '../../kit/disk/mounted.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

/** Moves the state directory away and makes an empty one. @returns a function that restores it */
function replaceByEmpty(state: string): () => void {
  fs.renameSync(state, `${state}.away`);
  fs.mkdirSync(state, { mode: 0o711 });
  return () => {
    fs.rmSync(state, { recursive: true });
    fs.renameSync(`${state}.away`, state);
  };
}

function countingWorker(calls: string) {
  return {
    name: 'w',
    uses: ['dns-edge'],
    reset: { run: ['sh', '-c', `echo "$0" >> ${calls}`, '{current}'] },
  };
}

describe('a running agent with a state directory that is moved away', () => {
  it('writes nothing into the empty directory, notifies no worker, is critical, and continues when it is back', async () => {
    using dir = tempDir();
    const calls = dir.join('calls');
    const site = agentSite(dir, { workers: [countingWorker(calls)] });
    const notified = (): number => fs.readFileSync(calls, 'utf8').trim().split('\n').length;
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    assert.equal(notified(), 1);
    await site.repository.publish({ 'block.rpz': 'version 2\n' });
    const putBack = replaceByEmpty(site.paths.state);
    const { outcome, exitCode, problems, changed } = await agent.pull();
    assert.deepEqual(
      [outcome, exitCode, problems.map(({ code }) => code), changed],
      ['blocked', 6, ['STATE_VANISHED'], false],
    );
    await site.clock.advance(60_000);
    const report = await agent.status();
    const [finding] = judgeHostHealth(report).findings.filter(({ code }) => code === 'STATE_VANISHED');
    assert.deepEqual([finding?.level, report.confirmed, statusLabel(report)], ['critical', false, 'blocked']);
    assert.deepEqual(
      report.workers.flatMap(({ provenAtMs }) => provenAtMs ?? []),
      [],
    );
    const asked = agent.ask({ type: 'pause', by: 'anna', reason: 'test' });
    await assert.rejects(asked, { code: 'STATE_VANISHED' });
    assert.deepEqual([fs.readdirSync(site.paths.state), notified()], [[], 1]);
    putBack();
    assert.equal((await agent.pull()).outcome, 'activated');
    assert.equal(notified(), 2);
    const after = await agent.status();
    assert.deepEqual(
      after.problems.filter(({ code }) => code === 'STATE_VANISHED'),
      [],
    );
  });

  it('writes nothing into its own directory that a person emptied, and names steps that work in order', async () => {
    using dir = tempDir();
    const site = agentSite(dir);
    const { state } = site.paths;
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    {
      await using agent = site.start();
      await agent.ready;
      await agent.hasEnded(1);
      for (const name of fs.readdirSync(state)) fs.rmSync(join(state, name), { recursive: true });
      const { problems } = await agent.pull();
      assert.deepEqual(
        problems.map(({ code }) => code),
        ['STATE_VANISHED'],
      );
      await assert.rejects(agent.ask({ type: 'resume', by: 'anna' }), ({ hint }: WritError) => {
        const steps = [...hint.matchAll(/`([^`]+)`/g)].map(([, step]) => step);
        return (
          steps.join() === 'systemctl stop writ-agent,writ resume --new-state,systemctl start writ-agent'
        );
      });
      await site.clock.advance(60_000);
      assert.deepEqual(fs.readdirSync(state), []);
    }
    assert.deepEqual(fs.readdirSync(state), [], 'nor at the end of the agent');
    const accepted = await runWrit(['resume', '--new-state', '--config', site.configPath]);
    assert.equal(accepted.exitCode, 0, accepted.stderr);
    await using restarted = site.start();
    await restarted.ready;
    await restarted.hasEnded(1);
    assert.equal((await restarted.status()).bundles[0]?.serial, 1);
  });

  it('notices it between polls, and logs when it is back', async () => {
    using dir = tempDir();
    const site = agentSite(dir);
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    const putBack = replaceByEmpty(site.paths.state);
    await until(async () => {
      await site.clock.advance(5000);
      return agent.log.named('the state directory vanished; nothing is done until it is back').length > 0;
    });
    putBack();
    await until(async () => {
      await site.clock.advance(5000);
      return agent.log.named('the state directory is back').length > 0;
    });
  });

  it('does not accept a restored copy in its place before a restart', longCase, async () => {
    using dir = tempDir();
    const site = agentSite(dir);
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    {
      await using agent = site.start();
      await agent.ready;
      await agent.hasEnded(1);
      fs.cpSync(site.paths.state, dir.join('copy'), { recursive: true, verbatimSymlinks: true });
      fs.renameSync(site.paths.state, dir.join('away'));
      fs.renameSync(dir.join('copy'), site.paths.state);
      assert.equal((await agent.pull()).exitCode, 6);
    }
    await using restarted = site.start();
    await restarted.ready;
    assert.equal((await restarted.pull()).outcome, 'unchanged');
  });
});

const codeOf = ({ stdout }: { readonly stdout: string }): unknown =>
  (JSON.parse(stdout) as { readonly code?: unknown }).code;

describe('a pull without an agent', () => {
  async function withHost(act: (host: InstalledHost) => Promise<void>): Promise<void> {
    using installed = await installHost();
    using host = copyHost(installed);
    await act(host);
  }

  /** Without a mark in both places, as 0.1.0 leaves a host. */
  function removeMarks(host: InstalledHost): void {
    fs.rmSync(host.dir.join('state', 'state-mark.json'));
    fs.rmSync(host.dir.join('run', 'state-mark.json'));
  }

  it('refuses an empty directory within the boot, writes nothing there, and continues when the right one is back', () =>
    withHost(async (host) => {
      const putBack = replaceByEmpty(host.paths.state);
      const run = await host.writ('pull', '--json');
      assert.deepEqual([run.exitCode, codeOf(run)], [6, 'STATE_VANISHED']);
      const health = await host.writ('health', '--json');
      assert.match(health.stdout, /STATE_VANISHED/);
      assert.equal(health.exitCode, 2);
      assert.match((await host.writ('doctor', '--json')).stdout, /STATE_VANISHED/);
      assert.deepEqual(fs.readdirSync(host.paths.state), []);
      putBack();
      assert.equal((await host.writ('pull')).exitCode, 0);
    }));

  it('refuses a path without a directory within the boot, and makes none', longCase, () =>
    withHost(async (host) => {
      fs.renameSync(host.paths.state, host.dir.join('away'));
      const run = await host.writ('pull', '--json');
      assert.deepEqual(
        [run.exitCode, codeOf(run), fs.existsSync(host.paths.state)],
        [6, 'STATE_VANISHED', false],
      );
    }),
  );

  it('refuses the state directory of another host within the boot', longCase, () =>
    withHost(async (host) => {
      const mark = JSON.stringify({ writ: 1, mark: '0'.repeat(32) });
      fs.writeFileSync(host.dir.join('state', 'state-mark.json'), mark);
      const run = await host.writ('pull', '--json');
      assert.deepEqual([run.exitCode, codeOf(run)], [6, 'STATE_VANISHED']);
      assert.equal(fs.readFileSync(host.dir.join('state', 'state-mark.json'), 'utf8'), mark);
    }),
  );

  it('starts a new host after a reboot, which leaves no run directory', longCase, () =>
    withHost(async (host) => {
      replaceByEmpty(host.paths.state);
      fs.rmSync(host.dir.join('run'), { recursive: true });
      assert.equal((await host.writ('pull')).exitCode, 0);
    }),
  );

  it('starts a new host after a reboot that left the run directory on a disk', longCase, () =>
    withHost(async (host) => {
      const path = host.dir.join('run', 'state-mark.json');
      const { digest: _, ...known } = JSON.parse(fs.readFileSync(path, 'utf8')) as { digest: string };
      fs.writeFileSync(path, JSON.stringify({ ...known, boot: '00000000-0000-0000-0000-000000000000' }));
      replaceByEmpty(host.paths.state);
      assert.equal((await host.writ('pull')).exitCode, 0);
    }),
  );

  it('writes a mark in both places on an upgrade from a state without one', longCase, () =>
    withHost(async (host) => {
      removeMarks(host);
      assert.equal((await host.writ('pull')).exitCode, 0);
      const marks = ['state', 'run'].map((place) =>
        fs.readFileSync(host.dir.join(place, 'state-mark.json'), 'utf8'),
      );
      const [one, other] = marks.map((text) => (JSON.parse(text) as { mark: string }).mark);
      assert.equal(one, other);
    }),
  );

  it('accepts an old backup without a mark, and a backup with the same mark', longCase, () =>
    withHost(async (host) => {
      const restore = (change: (backup: string) => void): void => {
        const backup = host.dir.join('backup');
        fs.cpSync(host.paths.state, backup, {
          recursive: true,
          verbatimSymlinks: true,
          preserveTimestamps: true,
        });
        change(backup);
        fs.rmSync(host.paths.state, { recursive: true });
        fs.renameSync(backup, host.paths.state);
      };
      restore(() => undefined);
      assert.equal((await host.writ('pull')).exitCode, 0);
      restore((backup) => fs.rmSync(`${backup}/state-mark.json`));
      assert.equal((await host.writ('pull')).exitCode, 0);
      replaceByEmpty(host.paths.state);
      assert.equal((await host.writ('pull')).exitCode, 6);
    }),
  );
});

describe('writ resume --new-state', () => {
  it(
    'accepts a directory that was emptied on purpose, with a new mark in both places',
    longCase,
    async () => {
      using installed = await installHost();
      using host = copyHost(installed);
      const markIn = (place: string): string =>
        (JSON.parse(fs.readFileSync(host.dir.join(place, 'state-mark.json'), 'utf8')) as { mark: string })
          .mark;
      const before = markIn('run');
      for (const name of fs.readdirSync(host.paths.state))
        fs.rmSync(`${host.paths.state}/${name}`, { recursive: true });
      assert.equal((await host.writ('resume')).exitCode, 6);
      const accepted = await host.writ('resume', '--new-state', '--json');
      const { ended } = JSON.parse(accepted.stdout) as { ended: unknown };
      assert.deepEqual([accepted.exitCode, ended], [0, [{ kind: 'new-state', what: host.paths.state }]]);
      assert.notEqual(markIn('run'), before);
      assert.equal(markIn('run'), markIn('state'));
      assert.equal((await host.writ('pull')).exitCode, 0);
      assert.match((await host.writ('history')).stdout, /accepted as a new state directory/);
      const again = await host.writ('resume', '--new-state', '--json');
      assert.deepEqual((JSON.parse(again.stdout) as { ended: unknown }).ended, []);
    },
  );

  it('accepts no path without a directory, and makes none', async () => {
    using installed = await installHost();
    using host = copyHost(installed);
    fs.renameSync(host.paths.state, host.dir.join('away'));
    const run = await host.writ('resume', '--new-state', '--json');
    assert.deepEqual(
      [run.exitCode, codeOf(run), fs.existsSync(host.paths.state)],
      [6, 'STATE_VANISHED', false],
    );
  });

  it('refuses while an agent runs, which has the former content in memory', async () => {
    using dir = tempDir();
    const site = agentSite(dir);
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    replaceByEmpty(site.paths.state);
    const run = await runWrit(['resume', '--new-state', '--json', '--config', site.configPath]);
    assert.deepEqual([run.exitCode, codeOf(run), fs.readdirSync(site.paths.state)], [7, 'LOCK_HELD', []]);
  });
});

const unmounting = (path: string) => `
  import { execFileSync } from 'node:child_process';
  import * as fs from 'node:fs';
  process.chdir(${JSON.stringify(path)});
  const { wholeSystem } = await import(at('test/kit/agent/whole-system.js'));
  const { runWritProcess } = await import(at('test/kit/cli/writ-process.js'));
  const { until } = await import(at('test/kit/assert/until.js'));
  const join = (...parts) => [process.cwd(), ...parts].join('/');
  const writ = await wholeSystem({ path: process.cwd(), join }, { config: { bundles: [{ name: 'b' }] } });
  const health = async () => {
    const { exitCode, stdout } = await runWritProcess(['health', '--config', writ.config, '--json']);
    return [exitCode, /STATE_VANISHED/.test(stdout)];
  };
  const found = {};
  try {
    await writ.publish({ 'p.txt': 'one\\n' });
    await writ.startAgent();
    await until(() => writ.current() === 'generations/1');
    await until(async () => !(await health())[1]);
    fs.mkdirSync('elsewhere');
    execFileSync('mount', ['--bind', 'state', 'elsewhere']);
    execFileSync('umount', ['-l', 'state']);
    await writ.publish({ 'p.txt': 'two\\n' });
    await until(async () => (await health())[1]);
    await writ.nextPoll().catch(() => undefined);
    found.vanished = [await health(), fs.readdirSync('state')];
    execFileSync('mount', ['--bind', 'elsewhere', 'state']);
    await until(() => writ.current() === 'generations/2');
    await until(async () => !(await health())[1]);
    await writ.stopAgent();
    execFileSync('umount', ['state']);
    const { exitCode } = await runWritProcess(['pull', '--config', writ.config]);
    found.alone = [exitCode, fs.readdirSync('state')];
  } finally {
    await writ.stop();
  }
  console.log(JSON.stringify(found));
`;

const asRoot = process.getuid?.() === 0 ? needsMounts() : { skip: 'an unmount needs root' };

describe('a state directory on its own file system, which is unmounted', { ...asRoot, ...longCase }, () => {
  it('stays empty, with an agent and without one, and is used again when it is mounted', async () => {
    using dir = tempDir();
    const state = dir.join('state');
    const mounts = [`mkdir ${state}`, `mount -t tmpfs -o size=64m,mode=711 none ${state}`];
    const result = await runMounted(mounts, unmounting(dir.path));
    assert.equal(result.kind === 'exited' && result.exitCode, 0, JSON.stringify(result));
    const expected = { vanished: [[2, true], []], alone: [6, []] };
    assert.deepEqual(JSON.parse('stdout' in result ? result.stdout : 'null'), expected);
  });
});

// What an agent does while an archive does not come: its server may have no keys and still make a download take hours.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { describe, it } from 'node:test';
import { readStatusFile } from '../../../src/agent/report/status-file.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { AgentSite } from '../../kit/agent/agent-in-process.js';
import { active, minuteMs, zone } from '../../kit/agent/agent-with-release.js';
import { large, passUntil, slowDownload } from '../../kit/agent/slow-download.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const codes = ({ problems }: CycleResult): string[] => problems.map(({ code }) => code);

describe('an agent whose download does not end', () => {
  it('goes back on an order at once, and replaces then what the rollback brought', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    const answers = await agent.ask({ type: 'rollback', by: 'anna', reason: 'slow', force: false });
    const { outcome, generation } = answers.at(-1) as CycleResult;
    assert.deepEqual([outcome, active(stage.site)], ['activated', 'version 1\n']);
    stage.front.release();
    const end = await pulled;
    assert.deepEqual([end.outcome, end.fromGeneration], ['activated', generation]);
    assert.equal(active(stage.site), large['block.rpz']);
    assert.equal(stage.front.files.length, 3, 'nothing is sent twice');
  });

  it(
    'is paused on an order at once, and activates nothing when the download has ended',
    longCase,
    async () => {
      using dir = tempDir();
      await using stage = await slowDownload(dir);
      const { agent, pulled } = await stage.start();
      await using _ = agent;
      await agent.ask({ type: 'pause', by: 'anna', reason: 'exam' });
      stage.front.release();
      const end = await pulled;
      assert.deepEqual([end.outcome, codes(end)], ['deferred', ['ACTIVATION_PAUSED']]);
      assert.equal(active(stage.site), 'version 2\n');
      await agent.ask({ type: 'resume', by: 'anna' });
      assert.equal((await agent.pull()).outcome, 'activated');
      assert.equal(stage.front.files.length, 3, 'nothing is sent twice');
    },
  );

  it('leaves a withdrawn release within a poll interval, and the download with it', longCase, async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    await stage.site.repository.publish(zone(4), { withdraw: [2] });
    await stage.site.clock.advance(5 * minuteMs);
    const end = await pulled;
    assert.deepEqual([end.outcome, active(stage.site)], ['activated', 'version 4\n']);
    assert.equal(end.bundles[0]?.toSerial, 4);
  });

  it('ends the download of a release that is withdrawn meanwhile', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    await stage.site.repository.publish(zone(4), { withdraw: [3] });
    await stage.site.clock.advance(5 * minuteMs);
    assert.equal((await pulled).bundles[0]?.toSerial, 4);
    assert.equal(active(stage.site), 'version 4\n');
  });

  it('ends no download for a release that is merely newer', longCase, async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    await stage.site.repository.publish(zone(4));
    await stage.site.clock.advance(5 * minuteMs);
    await until(async () => {
      const roles = (await agent.status()).trust ?? [];
      return roles.find((one) => one.role === 'timestamp')?.version === 5;
    });
    assert.ok((await agent.status()).downloading);
    stage.front.release();
    assert.equal((await pulled).bundles[0]?.toSerial, 3);
  });

  it(
    'goes on with the download in its own staging while old generations are collected',
    longCase,
    async () => {
      using dir = tempDir();
      await using stage = await slowDownload(dir);
      const { agent, pulled } = await stage.start();
      await using _ = agent;
      const staged = fs.readdirSync(stage.site.paths.staging);
      for (let turn = 0; turn < 12; turn++) await stage.site.clock.advance(minuteMs / 2);
      assert.deepEqual([staged.length, fs.readdirSync(stage.site.paths.staging)], [1, staged]);
      stage.front.release();
      assert.equal((await pulled).outcome, 'activated');
    },
  );

  it('ends the download for another configuration, which a cycle of its own takes', longCase, async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    stage.site.configure({ repository: stage.site.repository.url });
    agent.reload();
    const { outcome, trigger } = await pulled;
    assert.deepEqual([outcome, trigger, agent.cycles().length], ['activated', 'pull', 3]);
    assert.equal(active(stage.site), large['block.rpz']);
  });

  it('is not stale and runs no onStale, because each refresh during the download was verified', async () => {
    using dir = tempDir();
    const onStale = { run: ['touch', dir.join('stale')] };
    await using stage = await slowDownload(dir, { maxStale: '7m', onStale });
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    const contactOf = async () => (await agent.status()).freshness;
    for (let refresh = 0; refresh < 3; refresh++) {
      const { verifiedAtMs } = await contactOf();
      await stage.site.clock.advance(5 * minuteMs);
      await until(async () => (await contactOf()).verifiedAtMs !== verifiedAtMs);
    }
    // The loop that judges the age takes its turn.
    await stage.site.clock.advance(minuteMs);
    const { state, overdueSinceMs } = await contactOf();
    assert.deepEqual([state, overdueSinceMs, fs.existsSync(dir.join('stale'))], ['fresh', undefined, false]);
    stage.front.release();
    assert.equal((await pulled).outcome, 'activated');
  });

  it('counts a refresh that fails during the download once, and reports when a later one succeeds', async () => {
    using dir = tempDir();
    await using stage = await slowDownload(dir);
    const { agent, pulled } = await stage.start();
    await using _ = agent;
    const contactOf = async () => (await agent.status()).freshness;
    const timestamp = path.join(stage.site.repository.directory, 'metadata', 'timestamp.json');
    fs.renameSync(timestamp, dir.join('timestamp'));
    await stage.site.clock.advance(5 * minuteMs);
    await until(async () => (await contactOf()).failing !== undefined);
    assert.equal((await contactOf()).failing?.times, 1);
    const written = readStatusFile(stage.site.paths)?.freshness;
    assert.equal(written?.failing?.times, 1, 'status.json');
    stage.front.release();
    assert.equal((await pulled).outcome, 'activated');
    assert.equal((await contactOf()).failing?.times, 1, 'the end of the cycle is not a further attempt');
    fs.renameSync(dir.join('timestamp'), timestamp);
    await agent.pull();
    assert.equal((await contactOf()).state, 'fresh');
  });

  it('takes back the release whose worker dies again and again in its bake time', async () => {
    using dir = tempDir();
    using worker = replaceableProcess(dir.join('worker.pid'));
    await using stage = await slowDownload(dir, {
      bundles: [{ name: 'dns-edge', bake: { for: '1m', restarts: 0 } }],
      workers: [
        {
          ...{ name: 'app', uses: ['dns-edge'], process: { pidFile: worker.pidFile } },
          reset: { run: ['true'], timeout: '10m' },
        },
      ],
    });
    const { agent, pulled } = await stage.start(() => passUntil(stage.site, () => hasSettled(stage.site)));
    await using _ = agent;
    // A look on a slow machine may see two ends as one: as many as the bake time has room for.
    for (let death = 0; death < 12 && active(stage.site) === 'version 2\n'; death++) {
      await worker.replace();
      const endMs = stage.site.clock.nowMs() + 5000;
      await passUntil(stage.site, () => stage.site.clock.nowMs() >= endMs);
    }
    await passUntil(stage.site, () => active(stage.site) === 'version 1\n');
    const { downloading, generation } = await agent.status();
    assert.ok(downloading, 'release 3 is still awaited');
    stage.front.release();
    const before = agent.cycles().length;
    await passUntil(stage.site, () => agent.cycles().length > before);
    const end = await pulled;
    assert.deepEqual([end.outcome, end.fromGeneration], ['activated', generation]);
  });
});

function hasSettled({ paths }: AgentSite): boolean {
  return fs.readFileSync(paths.ledger, 'utf8').includes('"isObserved":true');
}

interface ReplaceableProcess extends Disposable {
  readonly pidFile: string;
  /** Kills it, and starts another one in its place. */
  replace(): Promise<void>;
}

function replaceableProcess(pidFile: string): ReplaceableProcess {
  const start = (): ChildProcess => {
    const child = spawn('sleep', ['1000'], { stdio: 'ignore' });
    fs.writeFileSync(pidFile, `${child.pid}\n`);
    return child;
  };
  let child = start();
  return {
    pidFile,
    replace: async () => {
      child.kill('SIGKILL');
      await once(child, 'exit');
      child = start();
    },
    [Symbol.dispose]: () => child.kill('SIGKILL'),
  };
}

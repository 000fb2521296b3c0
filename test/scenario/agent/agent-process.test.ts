// The agent and its commands as processes of their own, with signals and a kill.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { StatusReport } from '../../../src/core/protocol/control-protocol.js';
import { gateIn } from '../../kit/agent/agent-in-process.js';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { jsonOf, type WritRun } from '../../kit/cli/run-writ.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { loadedSources, tracingEnv } from '../../kit/sources/loaded-sources.js';

const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });

interface Site extends Pick<WritSite, 'repository' | 'state' | 'run' | 'agent' | 'start'> {
  /** A command with --json. */
  writ(...args: string[]): Promise<WritRun & { readonly json: Record<string, unknown> }>;
  active(): string | undefined;
}

function siteIn(dir: TempDir, keys: Record<string, unknown> = {}): Site {
  const site = writSite(dir, { sandbox: 'off', ...keys });
  const path = join(site.state, 'policy/current/dns-edge/block.rpz');
  return {
    ...site,
    writ: async (...args) => {
      const ran = await site.writ(...args, '--json');
      return { ...ran, json: jsonOf(ran) };
    },
    active: () => (fs.existsSync(path) ? fs.readFileSync(path, 'utf8') : undefined),
  };
}

const codes = (json: Record<string, unknown>): string[] =>
  (json['problems'] as { code: string }[]).map((one) => one.code);

describe('writ agent', longCase, () => {
  it('locks its state directory, answers commands, and exits 0 on SIGTERM', async () => {
    using dir = tempDir();
    const site = siteIn(dir);
    await site.repository.publish(zone(1));
    await using agent = await site.agent();
    await until(() => site.active() === 'version 1\n');
    const second = await runWritProcess(['agent', '--config', dir.join('agent.yaml')]);
    assert.equal(second.exitCode, 7);
    assert.match(second.stderr, new RegExp(`held by agent \\(pid ${agent.child.pid}\\)`));
    await site.repository.publish(zone(2));
    const pull = await site.writ('pull');
    assert.deepEqual([pull.exitCode, pull.json['outcome'], site.active()], [0, 'activated', 'version 2\n']);
    const back = await site.writ('rollback', '--reason', 'views broke');
    assert.deepEqual([back.exitCode, site.active()], [0, 'version 1\n']);
    assert.deepEqual([(await site.writ('pull')).exitCode, site.active()], [8, 'version 1\n']);
    assert.equal((await site.writ('resume')).json['outcome'], 'resumed');
    assert.deepEqual([(await site.writ('pull')).exitCode, site.active()], [0, 'version 2\n']);
    const status = await site.writ('status');
    assert.deepEqual([status.json['outcome'], status.json['generation']], ['active', 3]);
    const { entries } = (await site.writ('history')).json as { entries: { reason?: string }[] };
    assert.ok(entries.some((one) => one.reason === 'views broke'));
    agent.child.kill('SIGTERM');
    assert.equal((await agent.ended).exitCode, 0);
    assert.deepEqual(fs.readdirSync(join(site.state, 'staging')), []);
    assert.equal(fs.existsSync(join(site.run, 'agent.sock')), false);
  });

  it('activates the release at the next start, without problems, after a kill during a check', async () => {
    using dir = tempDir();
    const gate = gateIn(dir);
    const site = siteIn(dir, { bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
    await site.repository.publish(zone(1));
    await using killed = site.start('agent');
    await gate.reached();
    killed.child.kill('SIGKILL');
    await killed.ended;
    assert.equal(fs.readdirSync(join(site.state, 'staging')).length, 1);
    assert.equal(site.active(), undefined);
    const stopped = await site.writ('status');
    assert.deepEqual(
      [stopped.exitCode, stopped.json['agent'], stopped.json['generation']],
      [0, 'stop', undefined],
    );
    gate.open();
    await using agent = await site.agent();
    await until(() => site.active() === 'version 1\n');
    const pull = await site.writ('pull');
    assert.deepEqual([pull.json['outcome'], codes(pull.json)], ['unchanged', []]);
    assert.deepEqual(fs.readdirSync(join(site.state, 'staging')), []);
    assert.equal(agent.child.exitCode, null);
  });

  it('survives a SIGHUP while it starts, and reloads the configuration when it runs', async () => {
    using dir = tempDir();
    const site = siteIn(dir);
    await site.repository.publish(zone(1));
    await using agent = site.start('agent');
    await agent.waitForStderr(/configuration read/);
    agent.child.kill('SIGHUP');
    await agent.waitForStderr(/configuration reloaded/);
    assert.equal(agent.child.exitCode, null);
  });

  it('survives a SIGHUP with a mistake in the configuration', async () => {
    using dir = tempDir();
    const site = siteIn(dir);
    await site.repository.publish(zone(1));
    await using agent = await site.agent();
    const good = fs.readFileSync(dir.join('agent.yaml'));
    fs.writeFileSync(dir.join('agent.yaml'), `${good.toString().slice(0, -1)},"pol":1}`);
    agent.child.kill('SIGHUP');
    await until(async () => codes((await site.writ('status')).json).includes('CONFIG_INVALID'));
    fs.writeFileSync(dir.join('agent.yaml'), good);
    agent.child.kill('SIGHUP');
    await until(async () => codes((await site.writ('status')).json).length === 0);
    assert.equal(agent.child.exitCode, null);
  });
});

describe('a host without an agent', longCase, () => {
  it('runs pull, rollback, pause, resume and history in the command itself', async () => {
    using dir = tempDir();
    const site = siteIn(dir);
    await site.repository.publish(zone(1));
    const first = await site.writ('pull');
    assert.deepEqual([first.exitCode, first.json['outcome'], site.active()], [0, 'activated', 'version 1\n']);
    await site.repository.publish(zone(2));
    assert.equal((await site.writ('pull')).exitCode, 0);
    assert.deepEqual([(await site.writ('rollback')).exitCode, site.active()], [0, 'version 1\n']);
    const published = JSON.parse(fs.readFileSync(join(site.run, 'status.json'), 'utf8')) as StatusReport;
    assert.deepEqual(
      [published.generation, published.holds.length, published.freshness.state],
      [1, 1, 'fresh'],
    );
    const held = await site.writ('pull');
    assert.deepEqual([held.exitCode, codes(held.json)], [8, ['RELEASE_HELD']]);
    assert.equal((await site.writ('resume')).exitCode, 0);
    const paused = await site.writ('pause', '--for', '2h', '--reason', 'freeze');
    assert.deepEqual([paused.exitCode, paused.json['outcome']], [0, 'paused'], paused.stdout);
    const waits = await site.writ('pull');
    assert.deepEqual([waits.exitCode, codes(waits.json)], [8, ['ACTIVATION_PAUSED']]);
    assert.equal((await site.writ('resume')).exitCode, 0);
    assert.deepEqual([(await site.writ('pull')).exitCode, site.active()], [0, 'version 2\n']);
    const { entries } = (await site.writ('history')).json as { entries: { result: { trigger: string } }[] };
    assert.deepEqual(
      entries.map((one) => one.result.trigger),
      ['pull', 'pause', 'pull', 'pause', 'pause', 'pull', 'rollback', 'pull', 'pull'],
    );
    const status = (await site.writ('status')).json;
    assert.deepEqual([status['agent'], status['generation'], codes(status)], ['stop', 3, []]);
    assert.equal((status['freshness'] as { state: string }).state, 'fresh');
  });

  it('reports no generation and no problem by writ status before its first policy', async () => {
    using dir = tempDir();
    const status = await siteIn(dir).writ('status');
    assert.equal(status.exitCode, 0, status.stdout);
    assert.deepEqual(
      [status.json['agent'], status.json['generation'], codes(status.json)],
      ['stop', undefined, []],
    );
  });

  it('loads no module of the network for writ status', async () => {
    using dir = tempDir();
    const site = siteIn(dir);
    await site.repository.publish(zone(1));
    await site.writ('pull');
    const trace = dir.join('imports');
    const run = await runWritProcess(['status', '--config', dir.join('agent.yaml')], {
      env: tracingEnv(trace),
    });
    assert.equal(run.exitCode, 0, run.stderr);
    const { sources, joined, whole } = loadedSources(trace);
    assert.ok(sources.includes('src/agent/control/offline-status.ts'));
    assert.ok(!sources.includes('src/platform/net/http-client.ts'));
    for (const name of ['undici', 'tar']) assert.ok(![...joined, ...whole].includes(name), name);
  });
});

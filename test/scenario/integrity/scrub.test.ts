// The agent scans its policy on disk while it runs: on its timer, on request, and beside its cycles.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { HistoryEntry } from '../../../src/core/protocol/control-protocol.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import type { StatusReport } from '../../../src/core/status/status.js';
import type { VerifyResult } from '../../../src/core/status/verify-report.js';
import { systemClock } from '../../../src/platform/time/clock.js';
import { type AgentInProcess, type AgentSite, agentSite, gateIn } from '../../kit/agent/agent-in-process.js';
import { longCase } from '../../kit/assert/long-case.js';
import { seededBytes } from '../../kit/assert/seeded.js';
import { until } from '../../kit/assert/until.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { startWrit } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';

const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });
const hourMs = 3_600_000;

/** Polls only once, so that later actions are scans. */
async function siteWith(dir: TempDir, keys: Record<string, unknown> = {}): Promise<AgentSite> {
  const site = agentSite(dir, { poll: { every: '30d' }, ...keys });
  await site.repository.publish(zone(1));
  return site;
}

function file({ paths }: AgentSite): string {
  return join(paths.current, 'dns-edge/block.rpz');
}

function spoil(site: AgentSite): void {
  fs.writeFileSync(file(site), 'VERSION 1\n');
}

/** The settle loop, the poll loop and the scrubber wait. */
async function atRest(agent: AgentInProcess, site: AgentSite): Promise<void> {
  await agent.hasEnded(1);
  await until(() => site.clock.sleeping() === 5);
}

const looks = (agent: AgentInProcess): number => agent.log.named('scanned the policy on disk').length;

async function history(agent: AgentInProcess): Promise<HistoryEntry[]> {
  const answers = await agent.ask({ type: 'history', limit: 100 });
  return answers.filter((one): one is HistoryEntry => one.type === 'history.entry');
}

async function verify(agent: AgentInProcess, repair: boolean): Promise<VerifyResult> {
  return (await agent.ask({ type: 'verify', repair, by: 'anna' })).at(-1) as VerifyResult;
}

describe('the timer', longCase, () => {
  it('scans at its interval, repairs the damage, and reports it in every place', async () => {
    using dir = tempDir();
    const site = await siteWith(dir);
    await using agent = site.start();
    await atRest(agent, site);
    await site.clock.advance(hourMs);
    await until(() => looks(agent) === 1);
    assert.equal((await agent.status()).scrub?.outcome, 'intact');
    spoil(site);
    await until(() => site.clock.sleeping() === 5);
    await site.clock.advance(hourMs);
    await until(() => looks(agent) === 2);
    assert.equal(fs.readFileSync(file(site), 'utf8'), 'version 1\n');
    const { generation, scrub, problems, last } = await agent.status();
    assert.deepEqual([generation, problems, last?.trigger], [2, [], 'repair']);
    assert.deepEqual([scrub?.outcome, scrub?.found, scrub?.damage], ['repaired', 1, []]);
    assert.deepEqual(scrub?.counts, { looks: 2, damaged: 1, repaired: 1, failed: 0 });
    const [entry] = await history(agent);
    assert.deepEqual([entry?.result.type, entry?.result.outcome], ['repair.result', 'activated']);
    assert.match(entry?.reason ?? '', /dns-edge: block\.rpz changed on disk/);
  });

  it('only reports the damage where the configuration forbids a repair, once', async () => {
    using dir = tempDir();
    const site = await siteWith(dir, { scrub: { repair: false } });
    await using agent = site.start();
    await atRest(agent, site);
    spoil(site);
    for (const count of [1, 2]) {
      await site.clock.advance(hourMs);
      await until(() => looks(agent) === count);
      await until(() => site.clock.sleeping() === 5);
    }
    assert.equal(fs.readFileSync(file(site), 'utf8'), 'VERSION 1\n');
    const report = await agent.status();
    assert.deepEqual([report.generation, report.problems.map((one) => one.code)], [1, ['STATE_DAMAGED']]);
    assert.equal(judgeHostHealth(report).level, 'critical');
    const said = (await history(agent)).filter((one) => one.result.trigger === 'verify');
    assert.deepEqual(
      said.map((one) => one.result.problems[0]?.code),
      ['STATE_DAMAGED'],
    );
    const repaired = (await history(agent)).filter((one) => one.result.trigger === 'repair');
    assert.deepEqual(repaired, [], 'nothing was');
    const pulled = await agent.pull();
    assert.deepEqual([pulled.outcome, pulled.problems[0]?.code], ['degraded', 'STATE_DAMAGED']);
    assert.equal((await verify(agent, true)).outcome, 'repaired');
    assert.deepEqual((await agent.status()).problems, []);
    assert.equal((await agent.pull()).outcome, 'unchanged');
  });

  it('tries a failed repair again at growing intervals, and reports it once', async () => {
    using dir = tempDir();
    const site = await siteWith(dir);
    await using agent = site.start();
    await atRest(agent, site);
    spoil(site);
    fs.rmSync(join(site.paths.archives, 'dns-edge'), { recursive: true });
    fs.renameSync(site.repository.directory, dir.join('away'));
    for (const [count, delayMs] of [hourMs, 60_000, 120_000].entries()) {
      await site.clock.advance(delayMs);
      await until(() => looks(agent) === count + 1);
      await until(() => site.clock.sleeping() === 5);
    }
    const report = await agent.status();
    assert.deepEqual(report.scrub?.counts, { looks: 3, damaged: 3, repaired: 0, failed: 3 });
    const failed = (await history(agent)).filter((one) => one.result.type === 'repair.result');
    assert.deepEqual(
      failed.map((one) => one.result.problems[0]?.code),
      ['REPAIR_FAILED'],
    );
    fs.renameSync(dir.join('away'), site.repository.directory);
    await site.clock.advance(240_000);
    await until(() => looks(agent) === 4);
    assert.equal(fs.readFileSync(file(site), 'utf8'), 'version 1\n');
    assert.equal((await agent.status()).scrub?.outcome, 'repaired');
  });

  it('does not scan while it is off, until a reload sets an interval', async () => {
    using dir = tempDir();
    const site = await siteWith(dir, { scrub: { every: 'off' } });
    await using agent = site.start();
    await atRest(agent, site);
    spoil(site);
    await site.clock.advance(2 * hourMs);
    assert.equal(looks(agent), 0);
    site.configure({ scrub: { every: '10m' } });
    agent.reload();
    await agent.hasEnded(2);
    await until(() => site.clock.sleeping() === 5);
    await site.clock.advance(600_000);
    await until(() => looks(agent) === 1);
    assert.equal(fs.readFileSync(file(site), 'utf8'), 'version 1\n');
  });

  it('ends within a scan when the agent is asked to end', async () => {
    using dir = tempDir();
    const site = agentSite(dir, { poll: { every: '30d' }, scrub: { rate: '100kB' } });
    await site.repository.publish({ 'block.rpz': seededBytes(3_000_000) });
    await using agent = site.start();
    await atRest(agent, site);
    await site.clock.advance(hourMs);
    await until(() => site.clock.sleeps.some((one) => one > 5000 && one < 15_000));
    assert.ok((await agent.status()).agent === 'run', 'it answers while it looks');
    agent.stop();
    await agent.ended;
    assert.equal(looks(agent), 0);
  });
});

describe('a scan beside a cycle', longCase, () => {
  it('repairs after the end of the cycle, and then the active generation', async () => {
    using dir = tempDir();
    const gate = gateIn(dir);
    const site = await siteWith(dir, { bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
    await using agent = site.start();
    await gate.reached();
    gate.open();
    await atRest(agent, site);
    fs.rmSync(dir.join('check-waits'));
    fs.rmSync(dir.join('check-may-end'));
    await site.repository.publish(zone(2));
    const pull = agent.pull();
    await gate.reached();
    spoil(site);
    const verified = verify(agent, true);
    await agent.status();
    assert.equal(fs.readFileSync(file(site), 'utf8'), 'VERSION 1\n', 'nothing moves under the cycle');
    gate.open();
    assert.equal((await pull).outcome, 'activated');
    const { outcome, exitCode, generations } = await verified;
    assert.deepEqual([exitCode, generations[0]?.role, generations[0]?.damage], [0, 'active', []]);
    assert.ok(['intact', 'repaired'].includes(outcome));
    assert.equal(fs.readFileSync(file(site), 'utf8'), 'version 2\n');
  });
});

describe('writ verify', () => {
  it('with a running agent and without one finds damage, repairs it, and exits with the code of the rest', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const config = dir.join('agent.yaml');
    const places = { repository: repository.url, root: repository.rootPath, state: dir.join('state') };
    const keys = { ...places, run: dir.join('run'), poll: { every: '1h' }, bundles: [{ name: 'dns-edge' }] };
    fs.writeFileSync(config, JSON.stringify(keys));
    const writ = (...args: string[]) => runWrit([...args, '--config', config]);
    const path = dir.join('state/policy/current/dns-edge/block.rpz');
    assert.deepEqual(
      [(await writ('verify')).exitCode, (await writ('verify')).stdout.split(' ')[0]],
      [0, 'EMPTY'],
    );
    for (const version of [1, 2]) {
      await repository.publish(zone(version));
      assert.equal((await writ('pull')).exitCode, 0);
    }
    const whole = await writ('verify');
    assert.deepEqual(
      [whole.exitCode, /INTACT {2}generation 2 \(active\), generation 1 \(previous\)/.test(whole.stdout)],
      [0, true],
    );

    fs.appendFileSync(path, 'mine\n');
    const old = fs.realpathSync(dir.join('state/policy/generations/1/dns-edge/block.rpz'));
    fs.appendFileSync(old, 'mine\n');
    const damaged = await writ('verify', '--json');
    const { outcome, found, code } = jsonOf(damaged) as unknown as VerifyResult & { code?: string };
    assert.deepEqual([damaged.exitCode, outcome, found.length, code], [1, 'damaged', 2, 'STATE_DAMAGED']);
    assert.equal(fs.readFileSync(path, 'utf8'), 'version 2\nmine\n', 'looking changes nothing');
    const status = jsonOf(await writ('status', '--json')) as unknown as StatusReport & { outcome: string };
    const codes = status.problems.map((one) => one.code);
    assert.deepEqual([status.outcome, codes], ['stopped', ['STATE_DAMAGED']], 'once, in its own words');
    const repaired = await writ('verify', '--repair');
    assert.deepEqual([repaired.exitCode, /REPAIRED/.test(repaired.stdout)], [0, true], repaired.stdout);
    assert.equal(fs.readFileSync(path, 'utf8'), 'version 2\n');
    assert.equal((await writ('rollback')).exitCode, 0, 'the backup was made anew too');
    assert.equal(fs.readFileSync(path, 'utf8'), 'version 1\n');
    assert.equal(fs.readFileSync(old, 'utf8'), 'version 1\nmine\n', 'no tree that exists is written into');

    await using agent = startWrit(['agent', '--config', config]);
    await agent.waitForStderr(/"state":"run"/);
    fs.rmSync(path);
    const seen = await writ('verify');
    assert.deepEqual([seen.exitCode, /block\.rpz is missing/.test(seen.stdout)], [1, true], seen.stdout);
    const mended = await writ('verify', '--repair', '--json');
    assert.equal(mended.exitCode, 0, mended.stdout);
    assert.equal((jsonOf(mended)['repair'] as CycleResult).outcome, 'activated');
    assert.equal(fs.readFileSync(path, 'utf8'), 'version 1\n');
    const health = await writ('health');
    assert.doesNotMatch(health.stdout, /DAMAGED/);
    agent.child.kill('SIGTERM');
    assert.equal((await agent.ended).exitCode, 0);
  });
});

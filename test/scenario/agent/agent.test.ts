// The complete agent in this process, with virtual time: polls, requests, reloads and its end.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { type AgentSite, agentSite, gateIn } from '../../kit/agent/agent-in-process.js';
import { active, minuteMs, siteWithRelease, zone } from '../../kit/agent/agent-with-release.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { httpFixture } from '../../kit/net/http-fixture.js';

/** Inode and times of each path below the state directory; status.json is outside, because it has a heartbeat each minute. */
function stamps(site: AgentSite): Record<string, string> {
  const names = fs.readdirSync(site.paths.state, { recursive: true, encoding: 'utf8' });
  const paths = [...names.map((name) => `${site.paths.state}/${name}`), site.paths.state];
  return Object.fromEntries(
    paths.map((path) => {
      const { ino, mtimeMs, ctimeMs } = fs.lstatSync(path);
      return [path, `${ino} ${mtimeMs} ${ctimeMs}`];
    }),
  );
}

describe('the agent', () => {
  it('starts in order, polls at once without an active policy, and ends in order', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    assert.equal(fs.statSync(site.paths.socket).mode & 0o777, 0o600);
    assert.equal(active(site), 'version 1\n');
    assert.deepEqual([agent.cycles()[0]?.trigger, agent.cycles()[0]?.outcome], ['start', 'activated']);
    const { agent: state, generation, freshness, problems } = await agent.status();
    assert.deepEqual([state, generation, freshness.state, problems], ['run', 1, 'fresh', []]);
    agent.stop();
    await agent.ended;
    assert.deepEqual(agent.states, ['init', 'run', 'shutdown', 'stop']);
    const order = [
      'configuration read',
      'lock taken',
      'recovery',
      'host recovered and verified',
      'control socket open',
      'cycle ended',
    ];
    const messages = agent.log.lines.map((line) => line['msg']).filter((msg) => order.includes(String(msg)));
    assert.deepEqual(messages, order);
    assert.deepEqual(
      agent.log.named('state').map((line) => line['state']),
      ['init', 'run', 'shutdown', 'stop'],
    );
    assert.equal(fs.existsSync(site.paths.socket), false);
    assert.equal(JSON.parse(fs.readFileSync(site.paths.status, 'utf8')).agent, 'stop');
  });

  it('refuses a second agent on its state directory', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.ready;
    const error = await rejectsCode('LOCK_HELD', site.start().ended);
    assert.match(String(error.facts['holder']), new RegExp(`^agent \\(pid ${process.pid}\\)$`));
    await agent.hasEnded(1);
  });

  it('does not start with a foreign link `current`, and releases its lock', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    fs.mkdirSync(site.paths.policy, { recursive: true });
    fs.symlinkSync('/etc', site.paths.current);
    await rejectsCode('STATE_DAMAGED', site.start().ended);
    assert.equal(fs.readlinkSync(site.paths.current), '/etc');
    fs.unlinkSync(site.paths.current);
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    assert.equal(active(site), 'version 1\n');
  });

  it('continues and reports STATE_DAMAGED when its link is replaced while it runs', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    fs.unlinkSync(site.paths.current);
    fs.symlinkSync('/etc', site.paths.current);
    const result = await agent.pull();
    assert.deepEqual([result.outcome, result.problems[0]?.code], ['failed', 'STATE_DAMAGED']);
    assert.equal((await agent.status()).problems[0]?.code, 'STATE_DAMAGED');
    assert.equal(fs.readlinkSync(site.paths.current), '/etc');
  });
});

describe('polls', () => {
  it('run at the interval, activate a new release, and write nothing without one', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir, { poll: { every: '5m' } });
    await using agent = site.start();
    const poll = async (count: number): Promise<void> => {
      await agent.hasEnded(count);
      await until(() => site.clock.sleeping() === 5);
      await site.clock.advance(5 * minuteMs);
      await agent.hasEnded(count + 1);
    };
    // The first poll writes once, because its outcome differs from the start.
    await poll(1);
    const before = stamps(site);
    for (let count = 2; count < 6; count += 1) await poll(count);
    assert.deepEqual(stamps(site), before);
    assert.deepEqual(
      agent.cycles().map((one) => one.trigger),
      ['start', 'poll', 'poll', 'poll', 'poll', 'poll'],
    );
    await site.repository.publish(zone(2));
    await poll(6);
    assert.equal(active(site), 'version 2\n');
  });

  it('run by a cron expression too', async () => {
    using dir = tempDir();
    // node-cron reads the clock of the system, so the virtual time starts now.
    const site = await siteWithRelease(dir, { poll: { cron: '* * * * *' } }, { nowMs: Date.now() });
    await using agent = site.start();
    await agent.hasEnded(1);
    await until(() => site.clock.sleeping() === 5);
    const { nextPollAtMs } = await agent.status();
    assert.equal(Number(nextPollAtMs) % minuteMs, 0);
    const aheadMs = Number(nextPollAtMs) - site.clock.nowMs();
    assert.ok(aheadMs > 0 && aheadMs <= 2 * minuteMs, String(aheadMs));
    await site.clock.advance(Number(nextPollAtMs) - site.clock.nowMs());
    await agent.hasEnded(2);
  });

  it('start at the host’s own phase after a restart when the last poll was recent', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir, { poll: { every: '1h' } });
    {
      await using agent = site.start();
      await agent.hasEnded(1);
    }
    await site.clock.advance(minuteMs);
    await using again = site.start();
    await again.ready;
    const { nextPollAtMs, freshness } = await again.status();
    assert.ok(Number(nextPollAtMs) > site.clock.nowMs());
    const lastMs = site.clock.nowMs() - minuteMs;
    assert.deepEqual(freshness, {
      state: 'fresh',
      lastContactAtMs: lastMs,
      verifiedAtMs: lastMs,
      ageMs: minuteMs,
    });
    assert.deepEqual(again.cycles(), []);
  });

  it('do not start before the Retry-After of a server ends, also after a restart', async () => {
    using dir = tempDir();
    await using server = await httpFixture((_request, response) => {
      response.writeHead(503, { 'retry-after': '1800' }).end();
    });
    const site = agentSite(dir, { repository: server.url, poll: { every: '30m' } });
    const untilMs = site.clock.nowMs() + 1_800_000;
    {
      await using agent = site.start();
      await agent.hasEnded(1);
      assert.equal(agent.cycles()[0]?.problems[0]?.code, 'SERVER_BUSY');
      await until(async () => Number((await agent.status()).nextPollAtMs) >= untilMs);
      assert.equal((await agent.status()).freshness.state, 'stale');
    }
    const asked = server.requests.length;
    await using again = site.start();
    await again.ready;
    assert.ok(Number((await again.status()).nextPollAtMs) >= untilMs);
    await site.clock.advance(1_700_000);
    assert.equal(server.requests.length, asked);
    await site.clock.advance(35 * minuteMs);
    await again.hasEnded(1);
    assert.ok(server.requests.length > asked);
  });
});

describe('a pull', () => {
  it('is answered by a cycle that started after the request, when it arrives during a check', async () => {
    using dir = tempDir();
    const gate = gateIn(dir);
    const site = await siteWithRelease(dir, { bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
    await using agent = site.start();
    await gate.reached();
    await site.repository.publish(zone(2));
    const answers = Promise.all([agent.pull(), agent.pull()]);
    // Connections are accepted in their order: the agent has received both pulls when it answers this.
    await agent.ask({ type: 'status' });
    gate.open();
    const [one, other] = await answers;
    assert.deepEqual([one.bundles[0]?.toSerial, one.outcome], [2, 'activated']);
    assert.equal(other.cycle, one.cycle, 'two pulls share one follow-up');
    assert.equal(agent.cycles().length, 2);
    assert.equal(active(site), 'version 2\n');
  });

  it('with force is answered only by a forced cycle, which a waiting pull shares', async () => {
    using dir = tempDir();
    const gate = gateIn(dir);
    const site = await siteWithRelease(dir, { bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
    await using agent = site.start();
    await gate.reached();
    const plain = agent.pull();
    await until(() => agent.log.lines.length > 0);
    const forced = agent.pull('force');
    await agent.status();
    gate.open();
    const results = await Promise.all([plain, forced]);
    assert.deepEqual(
      results.map((one) => one.trigger),
      ['force', 'force'],
    );
    assert.equal(results[0]?.cycle, results[1]?.cycle);
  });

  it('streams its steps before its result, and is in the history with the name of its caller', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    const answers = await agent.ask({ type: 'pull', force: false, by: 'anna' });
    assert.equal(answers[0]?.type, 'cycle.started');
    assert.ok(answers.some((one) => one.type === 'step.finished' && one.step === 'commit'));
    const result = answers.at(-1);
    assert.ok(result?.type === 'pull.result');
    const entries = await agent.ask({ type: 'history', limit: 1, cycle: result.cycle });
    assert.deepEqual(
      entries.map((one) => (one.type === 'history.entry' ? one.by : one.type)),
      ['anna', 'end'],
    );
  });
});

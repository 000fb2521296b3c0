// The agent as a whole in this process: polls, requests, reloads and its end, with time that the test moves.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { type AgentSite, agentSite, gateIn } from '../../kit/agent/agent-in-process.js';
import { active, minuteMs, siteWithRelease, zone } from '../../kit/agent/agent-with-release.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { httpFixture } from '../../kit/net/http-fixture.js';

/** What a write would change, of everything below the state directory; status.json says every minute that the agent lives. */
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
  it('starts in order, polls at once where nothing is active, and ends in order', async () => {
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
    const said = agent.log.lines.map((line) => line['msg']).filter((msg) => order.includes(String(msg)));
    assert.deepEqual(said, order);
    assert.deepEqual(
      agent.log.named('state').map((line) => line['state']),
      ['init', 'run', 'shutdown', 'stop'],
    );
    assert.equal(fs.existsSync(site.paths.socket), false);
    assert.equal(JSON.parse(fs.readFileSync(site.paths.status, 'utf8')).agent, 'stop');
  });

  it('is alone on its state directory', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.ready;
    const error = await rejectsCode('LOCK_HELD', site.start().ended);
    assert.match(String(error.facts['holder']), new RegExp(`^agent \\(pid ${process.pid}\\)$`));
    await agent.hasEnded(1);
  });

  it('does not start on a link that it did not make, and holds nothing afterwards', async () => {
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

  it('goes on when somebody replaces its link while it runs, and says so', async () => {
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
  it('come at the interval, bring what is new, and write nothing when nothing is', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir, { poll: { every: '5m' } });
    await using agent = site.start();
    const poll = async (count: number): Promise<void> => {
      await agent.hasEnded(count);
      await until(() => site.clock.sleeping() === 5);
      await site.clock.advance(5 * minuteMs);
      await agent.hasEnded(count + 1);
    };
    // The first one says once that nothing is new any more.
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

  it('come by a cron expression too', async () => {
    using dir = tempDir();
    // node-cron asks the system's clock, so this agent lives today.
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

  it('begin at the host’s own phase after a restart when the last one was not long ago', async () => {
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

  it('are not begun before the time that a server asked for, also after a restart', async () => {
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
  it('that comes while a cycle is in a check is answered by one that began after it', async () => {
    using dir = tempDir();
    const gate = gateIn(dir);
    const site = await siteWithRelease(dir, { bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
    await using agent = site.start();
    await gate.reached();
    await site.repository.publish(zone(2));
    const answers = Promise.all([agent.pull(), agent.pull()]);
    // Connections are accepted in their order: what answers this has received both pulls.
    await agent.ask({ type: 'status' });
    gate.open();
    const [one, other] = await answers;
    assert.deepEqual([one.bundles[0]?.toSerial, one.outcome], [2, 'activated']);
    assert.equal(other.cycle, one.cycle, 'two pulls share one follow-up');
    assert.equal(agent.cycles().length, 2);
    assert.equal(active(site), 'version 2\n');
  });

  it('by force is answered by a forced cycle only, and whoever waits joins that one', async () => {
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

  it('streams its steps before its result, and is in the history with who asked', async () => {
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

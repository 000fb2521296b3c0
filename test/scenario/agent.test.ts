// The agent as a whole in this process: polls, requests, reloads and its end, with time that the test moves.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { createConnection } from 'node:net';
import { describe, it } from 'node:test';
import { appendHistory } from '../../src/agent/history.js';
import { syncCycle } from '../../src/agent/sync-cycle.js';
import type { HistoryEntry } from '../../src/core/control-protocol.js';
import type { CycleEventLine, CycleResult } from '../../src/core/cycle-report.js';
import { createDurableFs } from '../../src/platform/durable-fs.js';
import { type AgentSite, agentSite, gateIn } from '../support/agent-in-process.js';
import { rejectsCode } from '../support/assert-code.js';
import { cycleResult } from '../support/cycle-results.js';
import { httpFixture } from '../support/http-fixture.js';
import { joinAs, type RawWorker } from '../support/raw-worker.js';
import { confirms, scriptedDriver } from '../support/scripted-driver.js';
import { type TempDir, tempDir } from '../support/temp-dir.js';
import { type TestHost, testHost } from '../support/test-host.js';
import { until } from '../support/until.js';

const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });
const minuteMs = 60_000;

async function siteWithRelease(
  dir: TempDir,
  keys: Record<string, unknown> = {},
  options: { readonly nowMs?: number } = {},
): Promise<AgentSite> {
  const site = agentSite(dir, keys, options);
  await site.repository.publish(zone(1));
  return site;
}

function active(site: AgentSite): string {
  return fs.readFileSync(`${site.paths.current}/dns-edge/block.rpz`, 'utf8');
}

/** What a write would change, of everything below the state directory and of status.json. */
function stamps(site: AgentSite): Record<string, string> {
  const names = fs.readdirSync(site.paths.state, { recursive: true, encoding: 'utf8' });
  const paths = [...names.map((name) => `${site.paths.state}/${name}`), site.paths.state, site.paths.status];
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
      await until(() => site.clock.sleeping() === 3);
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
    await until(() => site.clock.sleeping() === 3);
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
      lastContactMs: lastMs,
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
    const site = agentSite(dir, { repository: server.url, poll: { every: '10m' } });
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
    await site.clock.advance(20 * minuteMs);
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
    const answers = Promise.all([agent.pull(), agent.pull(), agent.ask({ type: 'status' })]);
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

describe('the end of the agent', () => {
  it('in the middle of a cycle is clean: nobody is blamed, nothing is left, the next start goes on', async () => {
    using dir = tempDir();
    const gate = gateIn(dir);
    const site = await siteWithRelease(dir, { bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
    await using agent = site.start();
    await gate.reached();
    const waits = rejectsCode('AGENT_STOPPING', agent.pull());
    await agent.status();
    agent.stop();
    await agent.ended;
    await waits;
    assert.deepEqual(
      agent.cycles().map((one) => [one.outcome, one.problems[0]?.code]),
      [['failed', 'INTERRUPTED']],
    );
    assert.deepEqual(fs.readdirSync(site.paths.staging), []);
    assert.equal(fs.existsSync(site.paths.rejected), false);
    assert.equal(fs.existsSync(site.paths.journal), false);
    assert.equal(fs.existsSync(site.paths.current), false);
    gate.open();
    await using again = site.start();
    await again.hasEnded(1);
    assert.equal(active(site), 'version 1\n');
  });

  it('waits for no client that does not hang up', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const idle = createConnection({ path: site.paths.socket, allowHalfOpen: true });
    idle.write(`{"writ":1,"version":"0.1.0"}\n{"type":"status"}\n`);
    let text = '';
    idle.on('data', (chunk) => {
      text += chunk;
    });
    await until(() => text.includes('status.result'));
    agent.stop();
    await agent.ended;
    idle.destroy();
  });
});

describe('a cycle that is told to end', () => {
  const stoppedAt = async (
    step: 'canary' | 'load',
  ): Promise<{ test: TestHost; result: CycleResult; begun: readonly string[] }> => {
    const load = { run: ['true'], timeoutMs: 5000 } as const;
    const test = testHost({ groups: { app: { driver: scriptedDriver({ a: confirms }), config: { load } } } });
    for (const serial of [1, 2]) {
      await test.publish('access', { 'policy.yaml': `${serial}` }, { serial });
      if (serial === 1) assert.equal((await test.pull()).exitCode, 0);
    }
    const stop = new AbortController();
    const begun: string[] = [];
    const onEvent = (event: CycleEventLine): void => {
      if (event.type !== 'step.started') return;
      begun.push(event.step);
      if (event.step === step) stop.abort();
    };
    const request = { cycle: 'c-ab', trigger: 'poll', force: 'no' } as const;
    const { result } = await syncCycle(test.host, { ...request, signal: stop.signal, onEvent });
    return { test, result, begun };
  };

  for (const step of ['canary', 'load'] as const) {
    it(`in ${step} leaves the old policy, and blames nobody`, async () => {
      const { test, result, begun } = await stoppedAt(step);
      using _ = test;
      assert.deepEqual([result.outcome, result.problems[0]?.code], ['failed', 'INTERRUPTED']);
      assert.equal(begun.includes('swap'), step === 'load', 'before the swap there is nothing to take back');
      assert.equal(test.read('access/policy.yaml'), '1');
      assert.deepEqual(test.host.refusals.read().refusals, []);
      assert.equal(fs.existsSync(test.host.paths.journal), false);
      assert.equal(test.host.ledger.read().workers['app/a']?.wanted, 1);
      assert.equal((await test.pull()).outcome, 'activated');
    });
  }
});

describe('a reload', () => {
  it('with a mistake keeps the configuration in use, and says so until one succeeds', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    fs.writeFileSync(site.configPath, 'bundles: 7\n');
    agent.reload();
    await until(async () => (await agent.status()).problems.some((one) => one.code === 'CONFIG_INVALID'));
    await site.repository.publish(zone(2));
    assert.equal((await agent.pull()).outcome, 'activated');
    assert.deepEqual(
      (await agent.status()).problems.map((one) => one.code),
      ['CONFIG_INVALID'],
      'a new policy does not mend the file',
    );
    site.configure({ poll: { every: '1h' } });
    agent.reload();
    await agent.hasEnded(3);
    assert.equal(agent.cycles().at(-1)?.trigger, 'reload');
    assert.deepEqual((await agent.status()).problems, []);
  });

  it('takes another bundle, at once', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await site.repository.publish({ 'policy.yaml': 'a: 1\n' }, { bundle: 'access' });
    await using agent = site.start();
    await agent.hasEnded(1);
    site.configure({ bundles: [{ name: 'dns-edge' }, { name: 'access' }] });
    agent.reload();
    await until(() => fs.existsSync(`${site.paths.current}/access/policy.yaml`));
  });

  it('cannot move the policy from under the workers', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    site.configure({ policy: dir.join('elsewhere') });
    agent.reload();
    await until(async () => (await agent.status()).problems.some((one) => one.facts['key'] === 'policy'));
    assert.equal(fs.existsSync(dir.join('elsewhere')), false);
  });

  it('that cannot open its sockets leaves the old ones open', async () => {
    using dir = tempDir();
    const workers = (name: string) => [{ name, uses: ['dns-edge'], reset: { native: name } }];
    const site = await siteWithRelease(dir, { workers: workers('app') });
    await using agent = site.start();
    await agent.hasEnded(1);
    fs.writeFileSync(`${site.paths.run}/workers/other.sock`, 'no socket');
    site.configure({ workers: workers('other') });
    agent.reload();
    await until(async () => (await agent.status()).problems.some((one) => one.code === 'SOCKET_IN_USE'));
    const socket = createConnection({ path: `${site.paths.run}/workers/app.sock` });
    await new Promise((resolve, reject) => socket.once('data', resolve).once('error', reject));
    socket.destroy();
    assert.equal((await agent.pull()).outcome, 'unchanged');
  });
});

describe('a native worker', () => {
  it('is told what is active when it connects, and again after a restart and a reload', async () => {
    using dir = tempDir();
    const workers = [{ name: 'app', uses: ['dns-edge'], reset: { native: 'app' } }];
    const site = await siteWithRelease(dir, { workers, poll: { every: '1h' } });
    const join = () => joinAs(`${site.paths.run}/workers/app.sock`, 'web');
    const confirm = async (worker: RawWorker): Promise<void> => {
      const { id, generation } = JSON.parse(await worker.line()) as { id: number; generation: number };
      worker.send({ type: 'ack', id, generation });
    };
    {
      await using agent = site.start();
      await agent.hasEnded(1);
      const worker = await join();
      await confirm(worker);
      await until(async () => (await agent.status()).workers[0]?.state === 'confirmed');
      assert.equal((await agent.status()).confirmed, true);
      agent.reload();
      await worker.closed;
      await until(() => agent.log.named('configuration reloaded').length === 1);
      await confirm(await join());
      await agent.hasEnded(2);
      assert.equal(agent.cycles()[1]?.outcome, 'unchanged');
    }
    await using again = site.start();
    await again.ready;
    await confirm(await join());
    await until(async () => (await again.status()).confirmed);
  });
});

describe('after a rollback', () => {
  it('no poll brings the release back, until resume', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    await agent.pull();
    const back = (await agent.ask({ type: 'rollback', by: 'anna', reason: 'views broke' })).at(-1);
    assert.ok(back?.type === 'rollback.result');
    assert.deepEqual([back.outcome, active(site)], ['activated', 'version 1\n']);
    await until(() => site.clock.sleeping() === 3);
    await site.clock.advance(5 * minuteMs);
    await agent.hasEnded(4);
    assert.deepEqual([agent.cycles().at(-1)?.outcome, active(site)], ['deferred', 'version 1\n']);
    const held = await agent.status();
    assert.deepEqual(
      held.holds.map((one) => [one.bundle, one.serial, one.by, one.reason]),
      [['dns-edge', 2, 'anna', 'views broke']],
    );
    const resumed = (await agent.ask({ type: 'resume', by: 'anna' })).at(-1);
    assert.ok(resumed?.type === 'resume.result');
    assert.deepEqual(resumed.ended, [{ kind: 'hold', what: 'dns-edge 2' }]);
    assert.deepEqual(JSON.parse(fs.readFileSync(site.paths.status, 'utf8')).holds, []);
    await until(() => site.clock.sleeping() === 3);
    await site.clock.advance(5 * minuteMs);
    await agent.hasEnded(5);
    assert.equal(active(site), 'version 2\n');
  });
});

describe('the control socket', () => {
  it('gives a long history whole, to a reader at its own speed', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    const text = 'x'.repeat(1900);
    const steps = Array.from({ length: 25 }, () => ({ step: 'check', verdict: 'ok', text, durationMs: 1 }));
    const entry = { schema: 1, type: 'history.entry', result: cycleResult('activated'), steps };
    for (let count = 0; count < 120; count += 1)
      appendHistory(site.paths, createDurableFs(), entry as HistoryEntry);
    const answers = await agent.ask({ type: 'history', limit: 1000 });
    assert.equal(answers.at(-1)?.type, 'end');
    assert.equal(answers.length, 122);
  });

  it('refuses what is no request, and goes on', async () => {
    using dir = tempDir();
    const site = await siteWithRelease(dir);
    await using agent = site.start();
    await agent.hasEnded(1);
    await rejectsCode('MESSAGE_MALFORMED', agent.ask({ type: 'nonsense' } as never));
    await rejectsCode('MESSAGE_MALFORMED', agent.ask({ type: 'history', limit: 0 }));
    assert.equal((await agent.status()).agent, 'run');
  });
});

// A server that answers 503 with Retry-After, once: how long a host waits, and what ends the wait earlier.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { agentSite, gateIn } from '../../kit/agent/agent-in-process.js';
import { active, minuteMs, siteWithRelease, zone } from '../../kit/agent/agent-with-release.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { httpFixture } from '../../kit/net/http-fixture.js';

const hour = { 'retry-after': '3600' };

/** A host that polls at this interval; its only repository answers with a Retry-After of an hour from its second poll on. */
async function begin(dir: TempDir, every: string) {
  let mode: 'busy' | 'right' = 'right';
  let directory = '';
  const server = await httpFixture((request, response) => {
    const path = join(directory, decodeURIComponent(request.url ?? '/'));
    if (mode === 'busy') response.writeHead(503, hour).end();
    else if (existsSync(path)) response.end(readFileSync(path));
    else response.writeHead(404).end();
  });
  const site = agentSite(dir, { repository: server.url, poll: { every } });
  directory = site.repository.directory;
  await site.repository.publish(zone(1));
  const agent = site.start();
  await agent.hasEnded(1);
  assert.equal(active(site), 'version 1\n');
  mode = 'busy';
  assert.equal((await agent.pull()).problems[0]?.code, 'SERVER_BUSY');
  // The next poll gets the same answer, and delays the poll after it.
  await until(async () => (await agent.status()).nextPollAtMs !== undefined);
  await site.clock.advance(Number((await agent.status()).nextPollAtMs) - site.clock.nowMs());
  await agent.hasEnded(3);
  await until(async () => (await agent.status()).nextPollAtMs !== undefined);
  const nextInMs = async (): Promise<number> =>
    Number((await agent.status()).nextPollAtMs) - site.clock.nowMs();
  return {
    ...{ site, agent, server, nextInMs },
    becomeRight: () => {
      mode = 'right';
    },
  };
}

describe('one Retry-After of an hour, of the only repository', () => {
  for (const [every, everyMs] of [
    ['5s', 5000],
    ['5m', 5 * minuteMs],
    ['20m', 20 * minuteMs],
  ] as const)
    it(
      `delays the next poll of a host that polls each ${every} by one interval, at least five minutes`,
      longCase,
      async () => {
        using dir = tempDir();
        const { site, agent, server, nextInMs, becomeRight } = await begin(dir, every);
        await using _server = server;
        await using _agent = agent;
        const waitMs = await nextInMs();
        const delayMs = Math.max(everyMs, 5 * minuteMs);
        assert.ok(waitMs >= delayMs && waitMs < delayMs + everyMs, `${waitMs}`);
        becomeRight();
        await site.repository.publish(zone(2));
        await site.clock.advance(waitMs);
        await agent.hasEnded(4);
        assert.equal(active(site), 'version 2\n');
        await until(async () => (await nextInMs()) <= everyMs);
      },
    );

  it('is a problem in the status with the time of its end', async () => {
    using dir = tempDir();
    const { site, agent, server } = await begin(dir, '2m');
    await using _server = server;
    await using _agent = agent;
    const [busy] = (await agent.status()).problems;
    assert.equal(busy?.code, 'SERVER_BUSY');
    assert.equal(busy?.facts['untilMs'], site.clock.nowMs() + 5 * minuteMs);
    assert.match(busy?.message ?? '', /no poll before \d{4}-/);
  });

  it('ends with a valid answer to a pull by an operator', async () => {
    using dir = tempDir();
    const { agent, server, nextInMs, becomeRight } = await begin(dir, '2m');
    await using _server = server;
    await using _agent = agent;
    assert.ok((await nextInMs()) > 5 * minuteMs);
    becomeRight();
    assert.equal((await agent.pull()).outcome, 'unchanged');
    await until(async () => (await nextInMs()) <= 2 * minuteMs);
    assert.deepEqual((await agent.status()).problems, []);
  });

  it('ends with a reload that names another repository, also one that does not answer', async () => {
    using dir = tempDir();
    const { site, agent, server, nextInMs } = await begin(dir, '2m');
    await using _server = server;
    await using _agent = agent;
    assert.ok((await nextInMs()) > 5 * minuteMs);
    await using other = await httpFixture((_request, response) => response.writeHead(500).end());
    site.configure({ repository: other.url });
    await agent.ask({ type: 'reload', by: 'anna' });
    assert.ok(other.requests.length > 0);
    await until(async () => (await nextInMs()) <= 2 * minuteMs);
    assert.ok((await agent.status()).problems.every(({ code }) => code !== 'SERVER_BUSY'));
  });

  it('continues after a reload with the same repository', longCase, async () => {
    using dir = tempDir();
    const { site, agent, server, nextInMs } = await begin(dir, '2m');
    await using _server = server;
    await using _agent = agent;
    site.configure({ host: { id: 'test', labels: { site: 'b' } } });
    agent.reload();
    await until(async () => (await agent.status()).labels !== undefined);
    assert.ok((await nextInMs()) > 5 * minuteMs);
  });
});

describe('the time of the next poll in the status', () => {
  it('is absent while a poll runs', async () => {
    using dir = tempDir();
    const gate = gateIn(dir);
    const site = await siteWithRelease(dir, { bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
    await using agent = site.start();
    await gate.reached();
    assert.equal((await agent.status()).nextPollAtMs, undefined);
    gate.open();
    await agent.hasEnded(1);
    await until(async () => (await agent.status()).nextPollAtMs !== undefined);
  });
});

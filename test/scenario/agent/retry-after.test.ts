// A server that answers 503 with Retry-After, once: how long a host believes it, and what ends it before.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { agentSite, gateIn } from '../../kit/agent/agent-in-process.js';
import { active, minuteMs, siteWithRelease, zone } from '../../kit/agent/agent-with-release.js';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { httpFixture } from '../../kit/net/http-fixture.js';

const hour = { 'retry-after': '3600' };

/** A host that polls each so often, and its only repository, which asks for an hour of quiet from its second poll on. */
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
  // The next poll meets it too, and is what is put off.
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
    it(`keeps a host that polls each ${every} from news for one interval, or five minutes`, async () => {
      using dir = tempDir();
      const { site, agent, server, nextInMs, becomeRight } = await begin(dir, every);
      await using _server = server;
      await using _agent = agent;
      const waitMs = await nextInMs();
      const quietMs = Math.max(everyMs, 5 * minuteMs);
      assert.ok(waitMs >= quietMs && waitMs < quietMs + everyMs, `${waitMs}`);
      becomeRight();
      await site.repository.publish(zone(2));
      await site.clock.advance(waitMs);
      await agent.hasEnded(4);
      assert.equal(active(site), 'version 2\n');
      await until(async () => (await nextInMs()) <= everyMs);
    });

  it('is a problem in the status that says until when', async () => {
    using dir = tempDir();
    const { site, agent, server } = await begin(dir, '2m');
    await using _server = server;
    await using _agent = agent;
    const [busy] = (await agent.status()).problems;
    assert.equal(busy?.code, 'SERVER_BUSY');
    assert.equal(busy?.facts['untilMs'], site.clock.nowMs() + 5 * minuteMs);
    assert.match(busy?.message ?? '', /no poll before \d{4}-/);
  });

  it('ends with a good answer to a person’s pull', async () => {
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

  it('goes on after a reload that names the same repository', async () => {
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

describe('the time of the next poll', () => {
  it('is not named while a poll runs', async () => {
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

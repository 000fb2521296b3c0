// The server of a running agent offers a release and never delivers its files: health and status over time, the number of
// polls, and the operator's commands.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { agentSite } from '../../kit/agent/agent-in-process.js';
import { active, minuteMs, zone } from '../../kit/agent/agent-with-release.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { httpFixture } from '../../kit/net/http-fixture.js';

type Answer = (response: ServerResponse, bytes: Buffer) => void;

const answers: Readonly<Record<string, { readonly code: string; readonly answer: Answer }>> = {
  'answers 403': { code: 'SERVER_ERROR', answer: (response) => response.writeHead(403).end() },
  'answers 500': { code: 'SERVER_ERROR', answer: (response) => response.writeHead(500).end() },
  'ends each body early': {
    code: 'DOWNLOAD_TRUNCATED',
    answer: (response, bytes) => response.end(bytes.subarray(0, 10)),
  },
  'answers 404': { code: 'TARGET_MISSING', answer: (response) => response.writeHead(404).end() },
};

/** An agent with release 1, and a server that answers for the files of later releases by `targets`; undefined: the files as they are. */
async function begin(dir: TempDir, keys: Readonly<Record<string, unknown>> = {}) {
  const state: { targets: Answer | undefined } = { targets: undefined };
  let directory = '';
  const server = await httpFixture((request, response) => {
    const path = join(directory, decodeURIComponent(request.url ?? '/'));
    if (!existsSync(path)) response.writeHead(404).end();
    else if (state.targets !== undefined && request.url?.startsWith('/targets/'))
      state.targets(response, readFileSync(path));
    else response.end(readFileSync(path));
  });
  const site = agentSite(dir, { repository: server.url, poll: { every: '5m' }, ...keys });
  directory = site.repository.directory;
  await site.repository.publish(zone(1));
  const agent = site.start();
  await agent.hasEnded(1);
  assert.equal(active(site), 'version 1\n');
  const poll = async (): Promise<void> => {
    await until(async () => (await agent.status()).nextPollAtMs !== undefined);
    const before = agent.cycles().length;
    await site.clock.advance(Number((await agent.status()).nextPollAtMs) - site.clock.nowMs());
    await agent.hasEnded(before + 1);
  };
  const health = async () => judgeHostHealth(await agent.status());
  const missed = async () => (await agent.status()).bundles[0]?.missed;
  return { site, agent, server, state, poll, health, missed };
}

describe('an agent that cannot download an offered release', () => {
  for (const [what, { code, answer }] of Object.entries(answers))
    it(`warns with code and URL after release.staleAfter, and stays fresh, when /targets/ ${what}`, async () => {
      using dir = tempDir();
      const { site, agent, server, state, poll, health, missed } = await begin(dir);
      await using _server = server;
      await using _agent = agent;
      state.targets = answer;
      await site.repository.publish(zone(2));
      await poll();
      const offeredMs = Number((await missed())?.sinceMs);
      assert.deepEqual([await missed().then((one) => one?.state), (await missed())?.serial], ['waiting', 2]);
      if (code !== 'TARGET_MISSING') assert.equal((await health()).level, 'ok');
      const begunMs = site.clock.nowMs();
      const pollsBefore = agent.cycles().length;
      for (let polls = 0; polls < 12; polls += 1) {
        await poll();
        const { freshness } = await agent.status();
        assert.deepEqual([freshness.state, freshness.failing], ['fresh', undefined]);
        const isLate = site.clock.nowMs() - offeredMs > 15 * minuteMs;
        const found = (await health()).findings.find((one) => one.code === 'RELEASE_STALE');
        assert.equal(found?.level, isLate ? 'warning' : undefined);
        if (isLate)
          assert.match(found?.text ?? '', new RegExp(`dns-edge 2 .*\\[${code}\\] ${server.url}targets/`));
      }
      // One quick retry, and each regular poll after it.
      const passedMs = site.clock.nowMs() - begunMs;
      assert.ok(passedMs <= 12 * 5 * minuteMs && passedMs > 10 * 5 * minuteMs, `${passedMs}`);
      assert.equal(agent.cycles().length - pollsBefore, 12);

      // Another release does not make the host less late.
      await site.repository.publish(zone(3));
      await poll();
      assert.deepEqual(
        { ...(await missed()), url: '' },
        { serial: 3, sinceMs: offeredMs, code, url: '', state: 'stale' },
      );
      state.targets = undefined;
      await poll();
      assert.deepEqual(
        [active(site), await missed(), (await health()).level],
        ['version 3\n', undefined, 'ok'],
      );
    });

  it(
    'becomes critical after release.maxStale, and runs the commands of maxStale, also over a restart',
    longCase,
    async () => {
      using dir = tempDir();
      const out = dir.join('out');
      const appendCommand = (text: string) => ({
        run: ['sh', '-c', `echo ${text} $WRIT_STALE_STATE $WRIT_STALE_BUNDLE $WRIT_STALE_CODE >> ${out}`],
      });
      const keys = {
        release: { maxStale: '30m' },
        onStale: appendCommand('stop'),
        onFresh: appendCommand('start'),
      };
      const first = await begin(dir, keys);
      await using _server = first.server;
      await using _agent = first.agent;
      const { site, state } = first;
      state.targets = (response) => response.writeHead(403).end();
      await site.repository.publish(zone(2));
      for (let polls = 0; polls < 6; polls += 1) await first.poll();
      assert.equal((await first.health()).level, 'warning');
      const sinceMs = (await first.missed())?.sinceMs;
      await first.agent[Symbol.asyncDispose]();
      assert.equal(existsSync(out), false);

      await using agent = site.start();
      await agent.ready;
      assert.equal((await agent.status()).bundles[0]?.missed?.sinceMs, sinceMs);
      for (let minutes = 0; minutes < 20; minutes += 1) await site.clock.advance(minuteMs);
      await until(() => existsSync(out));
      const { findings } = judgeHostHealth(await agent.status());
      assert.deepEqual([findings[0]?.code, findings[0]?.level], ['RELEASE_STALE', 'critical']);
      assert.equal((await agent.status()).freshness.overdueSinceMs, undefined);
      state.targets = undefined;
      await agent.pull();
      await until(() => readFileSync(out, 'utf8') === 'stop release dns-edge SERVER_ERROR\nstart fresh\n');
      assert.deepEqual((await agent.status()).problems, []);
    },
  );

  it('does not count the time of a pause, and counts from zero when the pause ends', longCase, async () => {
    using dir = tempDir();
    const { site, agent, server, state, poll, health, missed } = await begin(dir);
    await using _server = server;
    await using _agent = agent;
    state.targets = (response) => response.writeHead(403).end();
    await site.repository.publish(zone(2));
    for (let polls = 0; polls < 6; polls += 1) await poll();
    assert.equal((await health()).level, 'warning');
    await agent.ask({ type: 'pause', by: 'anna', reason: 'night' });
    assert.equal(await missed(), undefined);
    await poll();
    await agent.ask({ type: 'resume', by: 'anna' });
    await poll();
    assert.equal((await missed())?.state, 'waiting');
  });

  it('misses no release when another mirror has the files', longCase, async () => {
    using dir = tempDir();
    const { site, agent, server, state, poll, health, missed } = await begin(dir);
    await using _server = server;
    await using _agent = agent;
    site.configure({ repository: [server.url, site.repository.url] });
    agent.reload();
    await until(async () => (await agent.status()).mirrors !== undefined);
    state.targets = (response) => response.writeHead(403).end();
    await site.repository.publish(zone(2));
    for (let polls = 0; polls < 6; polls += 1) await poll();
    assert.deepEqual(
      [active(site), await missed(), (await health()).level],
      ['version 2\n', undefined, 'ok'],
    );
  });

  it('names the URL of the mirror with the most specific failure when both fail', longCase, async () => {
    using dir = tempDir();
    const { site, agent, server, state, poll, missed } = await begin(dir);
    await using _server = server;
    await using _agent = agent;
    await using other = await httpFixture((_request, response) => response.writeHead(503).end());
    site.configure({ repository: [server.url, other.url] });
    agent.reload();
    await until(() => agent.cycles().length > 1);
    state.targets = (response) => response.writeHead(404).end();
    await site.repository.publish(zone(2));
    await poll();
    const { code, url, serial } = (await missed()) ?? {};
    assert.deepEqual([serial, code], [2, 'TARGET_MISSING']);
    assert.ok(url?.startsWith(`${server.url}targets/`), url);
  });
});

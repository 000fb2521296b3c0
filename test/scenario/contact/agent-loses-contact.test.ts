// The repository of a complete agent fails after a swap: the agent checks contact, restores the release before and reports it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agentSite } from '../../kit/agent/agent-in-process.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { serveDirectory } from '../../kit/net/serve-repository.js';

describe('an agent', longCase, () => {
  it('rolls a release back when its server is silent, and reports the wait for contact', async () => {
    using dir = tempDir();
    const site = agentSite(dir);
    await using server = await serveDirectory(site.repository.directory, () => false);
    const bundles = [{ name: 'dns-edge', bake: { contact: 'repository' } }];
    site.configure({ repository: server.url, bundles });
    await site.repository.publish({ f: '1' });
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    await site.repository.publish({ f: '2' });
    await agent.pull();
    assert.equal((await agent.status()).bundles[0]?.serial, 2);
    await server[Symbol.asyncDispose]();
    await until(async () => {
      await site.clock.advance(1000);
      return (await agent.status()).bundles[0]?.serial === 1;
    });
    const cause = agent.cycles().at(-1)?.problems[0]?.facts['cause'];
    assert.equal(cause, 'CONTACT_LOST');
    await until(async () => {
      await site.clock.advance(1000);
      const [problem] = (await agent.status()).problems.filter(({ code }) => code === 'CONTACT_LOST');
      return problem?.facts['state'] === 'away';
    });
  });
});

// An agent with metrics and events, as monitoring sees it: they agree with `writ status`, and their failures do not
// prevent an update.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { createServer, type Server } from 'node:net';
import { describe, it } from 'node:test';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { type AgentInProcess, agentSite } from '../../kit/agent/agent-in-process.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });

async function scrape(agent: AgentInProcess): Promise<string> {
  const [line] = agent.log.named('metrics open');
  const response = await fetch(new URL(`http://${line?.['address']}/metrics`));
  return response.text();
}

const eventsIn = (path: string): Record<string, unknown>[] =>
  fs
    .readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe('an agent with metrics and events', () => {
  it('reports the same in metrics, events and status', longCase, async () => {
    using dir = tempDir();
    const file = dir.join('events.jsonl');
    const site = agentSite(dir, { metrics: { listen: '127.0.0.1:0' }, events: { file } });
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    await site.repository.publish(zone(2));
    assert.equal((await agent.pull()).outcome, 'activated');
    const { generation, bundles } = await agent.status();
    const text = await scrape(agent);
    assert.ok(text.includes(`\nwrit_agent_active_generation ${generation}\n`));
    const serial = bundles[0]?.serial;
    assert.ok(text.includes(`writ_agent_bundle_serial{bundle="dns-edge",channel="stable"} ${serial}\n`));
    assert.ok(text.includes('writ_agent_cycles_total{outcome="activated"} 2\n'));
    assert.match(text, /\nwrit_agent_fetched_bytes_total [1-9]/);
    assert.match(text, /\nprocess_resident_memory_bytes /);
    const activated = eventsIn(file).filter((one) => one['event'] === 'policy.activated');
    assert.deepEqual(
      activated.map((one) => [one['fromGeneration'], one['generation'], one['host']]),
      [
        [undefined, 1, 'test'],
        [1, 2, 'test'],
      ],
    );
    agent.stop();
    await agent.ended;
    const states = eventsIn(file).filter((one) => one['event'] === 'agent.state');
    assert.deepEqual(
      states.map((one) => one['state']),
      ['init', 'run', 'shutdown', 'stop'],
    );
    await assert.rejects(scrape(agent), 'the address is free again');
  });

  it('runs without metrics when their address is in use', longCase, async () => {
    using dir = tempDir();
    const taken: Server = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    const { port } = taken.address() as { port: number };
    const site = agentSite(dir, {
      metrics: { listen: `127.0.0.1:${port}` },
      events: { file: dir.join('nowhere', 'events.jsonl') },
    });
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    assert.equal((await agent.status()).generation, 1);
    assert.equal(agent.log.named('metrics could not be opened; the agent runs without them').length, 1);
    taken.close();
  });

  it('leaves out metrics and events in a directory that other users can change, with a warning of health', async () => {
    using dir = tempDir();
    const open = dir.join('open');
    fs.mkdirSync(open);
    fs.chmodSync(open, 0o777);
    const site = agentSite(dir, {
      metrics: { socket: `${open}/metrics.sock` },
      events: { file: `${open}/events.jsonl` },
    });
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    const report = await agent.status();
    assert.equal(report.generation, 1, 'the update does not depend on metrics');
    assert.deepEqual(fs.readdirSync(open), []);
    const { findings } = judgeHostHealth(report);
    const found = findings.filter(({ code }) => code === 'PATH_UNSAFE');
    assert.deepEqual(
      found.map(({ level, text }) => [level, text]),
      ['events', 'metrics'].map((what) => [
        'warning',
        `${what} are left out: ${open} can be changed by others than root and the agent`,
      ]),
    );
    assert.match(report.problems[0]?.hint ?? '', /^Make root or the agent the owner/);
  });

  it('keeps its configuration when a reload would change the address of metrics', longCase, async () => {
    using dir = tempDir();
    const site = agentSite(dir, { metrics: { listen: '127.0.0.1:0' } });
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.ready;
    await agent.hasEnded(1);
    site.configure({ metrics: { listen: '127.0.0.1:1' } });
    agent.reload();
    const problems = async (): Promise<string[]> => (await agent.status()).problems.map((one) => one.code);
    await until(async () => (await problems()).length > 0);
    assert.deepEqual(await problems(), ['CONFIG_INVALID']);
  });
});

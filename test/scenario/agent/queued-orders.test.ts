// Requests of an operator that wait for a cycle: the generation that they were made for, and a client that leaves.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { rollbackStandalone } from '../../../src/agent/control/standalone-commands.js';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import type { ControlRequest, HistoryEntry } from '../../../src/core/protocol/control-protocol.js';
import { type AgentInProcess, type AgentSite, type Gate, gateIn } from '../../kit/agent/agent-in-process.js';
import { active, siteWithRelease, zone } from '../../kit/agent/agent-with-release.js';
import { copyHost, installHost } from '../../kit/agent/installed-host.js';
import { rejectsCode } from '../../kit/assert/assert-code.js';
import { longCase } from '../../kit/assert/long-case.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

interface Scene {
  readonly site: AgentSite;
  readonly agent: AgentInProcess;
  readonly gate: Gate;
}

/** Generation 2 is active, and no check waits. */
async function begin(dir: TempDir): Promise<Scene> {
  const gate = gateIn(dir);
  gate.open();
  const site = await siteWithRelease(dir, {
    bundles: [{ name: 'dns-edge', checks: [gate.check], bake: { for: 0 } }],
  });
  const agent = site.start();
  await agent.hasEnded(1);
  await site.repository.publish(zone(2));
  assert.equal((await agent.pull()).generation, 2);
  return { site, agent, gate };
}

/** @returns a pull of release 3, which waits in its check */
async function pullSlowly({ site, agent, gate }: Scene): Promise<{ readonly ended: Promise<CycleResult> }> {
  gate.close();
  await site.repository.publish(zone(3));
  const ended = agent.pull();
  await gate.reached();
  return { ended };
}

/** Connections are accepted in their request: with the second answer the agent also knows the clients that left before the first. */
async function waitUntilSeenBy(agent: AgentInProcess): Promise<void> {
  await agent.status();
  await agent.status();
}

const rollback = { type: 'rollback', by: 'anna' } as const satisfies ControlRequest;
const resultOf = (answers: readonly object[]): CycleResult => answers.at(-1) as CycleResult;

async function triggersIn(agent: AgentInProcess): Promise<string[]> {
  const entries = await agent.ask({ type: 'history', limit: 20 });
  return entries
    .filter((one): one is HistoryEntry => one.type === 'history.entry')
    .map(({ result }) => result.trigger);
}

describe('a queued rollback', () => {
  for (const [name, request] of [
    ['without a generation', rollback],
    ['to a generation that it names', { ...rollback, generation: 1 }],
    ['by force', { ...rollback, force: true }],
  ] as const)
    it(`moves nothing when the cycle before it moved policy: ${name}`, async () => {
      using dir = tempDir();
      const scene = await begin(dir);
      await using agent = scene.agent;
      const pull = await pullSlowly(scene);
      const answers = agent.ask(request);
      await waitUntilSeenBy(agent);
      scene.gate.open();
      assert.equal((await pull.ended).generation, 3);
      const result = resultOf(await answers);
      assert.deepEqual(
        [result.outcome, result.exitCode, result.changed, result.generation, result.problems[0]?.code],
        ['failed', 7, false, 3, 'GENERATION_CHANGED'],
      );
      assert.deepEqual(result.problems[0]?.facts, { active: 3, asked: 2 });
      assert.equal(active(scene.site), 'version 3\n');
      const { holds, problems, last } = await agent.status();
      assert.deepEqual([holds, problems, last?.outcome], [[], [], 'activated']);
    });

  it(
    'leaves the generation that was active at its request when the cycle moved nothing',
    longCase,
    async () => {
      using dir = tempDir();
      const scene = await begin(dir);
      await using agent = scene.agent;
      scene.gate.close();
      const pull = agent.pull('force');
      await scene.gate.reached();
      const answers = agent.ask(rollback);
      await waitUntilSeenBy(agent);
      scene.gate.open();
      assert.equal((await pull).generation, 2);
      assert.deepEqual([resultOf(await answers).outcome, active(scene.site)], ['activated', 'version 1\n']);
    },
  );

  it('is done once when it was requested twice', longCase, async () => {
    using dir = tempDir();
    const scene = await begin(dir);
    await using agent = scene.agent;
    scene.gate.close();
    const pull = agent.pull('force');
    await scene.gate.reached();
    const both = Promise.all([agent.ask(rollback), agent.ask(rollback)]);
    await waitUntilSeenBy(agent);
    scene.gate.open();
    await pull;
    const [one, other] = await both;
    assert.equal(resultOf(one).outcome, 'activated');
    assert.equal(resultOf(other).problems[0]?.code, 'GENERATION_CHANGED');
    assert.equal(active(scene.site), 'version 1\n');
  });

  it(
    'moves nothing on a host without an agent when another command moved policy before it',
    longCase,
    async () => {
      using installed = await installHost();
      using host = copyHost(installed);
      const gate = gateIn(host.dir);
      host.configure({ bundles: [{ name: 'dns-edge', checks: [gate.check] }] });
      const pull = host.writ('pull');
      await gate.reached();
      const back = rollbackStandalone({
        configPath: host.config,
        by: 'anna',
        version: '0.1.0',
        signal: new AbortController().signal,
        onEvent: () => undefined,
      });
      gate.open();
      assert.equal((await pull).exitCode, 0);
      const { problems, exitCode, generation } = await back;
      assert.deepEqual([problems[0]?.code, exitCode, generation], ['GENERATION_CHANGED', 7, 2]);
    },
  );
});

describe('a queued request of a client that disconnects', () => {
  const requests: readonly ControlRequest[] = [
    rollback,
    { type: 'pause', by: 'anna', reason: 'freeze' },
    { type: 'resume', by: 'anna' },
    { type: 'forget', by: 'anna' },
    { type: 'pull', force: true, by: 'anna' },
    { type: 'reload', by: 'anna' },
  ];
  for (const request of requests)
    it(`is cancelled: ${request.type}`, async () => {
      using dir = tempDir();
      const scene = await begin(dir);
      await using agent = scene.agent;
      if (request.type === 'resume') await agent.ask({ type: 'pause', by: 'anna', reason: 'freeze' });
      const before = await triggersIn(agent);
      scene.gate.close();
      await scene.site.repository.publish(zone(3));
      const running = agent.pull('force');
      await scene.gate.reached();
      const leaves = new AbortController();
      const asked = agent.ask(request, leaves.signal);
      await waitUntilSeenBy(agent);
      leaves.abort();
      await rejectsCode('INTERRUPTED', asked);
      await waitUntilSeenBy(agent);
      scene.gate.open();
      assert.equal((await running).generation, 3);
      // A request of now runs after the queued one.
      await agent.ask({ type: 'forget', by: 'ben' });
      const since = (await triggersIn(agent)).slice(0, -before.length);
      assert.deepEqual(since, ['force']);
      const { pause, generation } = await agent.status();
      assert.deepEqual([pause !== undefined, generation], [request.type === 'resume', 3]);
    });

  it('is cancelled: verify --repair of a damaged backup', async () => {
    using dir = tempDir();
    const scene = await begin(dir);
    await using agent = scene.agent;
    const { generations } = scene.site.paths;
    fs.writeFileSync(join(generations, '1', 'dns-edge', 'block.rpz'), 'damaged');
    const pull = await pullSlowly(scene);
    const leaves = new AbortController();
    const asked = agent.ask({ type: 'verify', repair: true, by: 'anna' }, leaves.signal);
    await waitUntilSeenBy(agent);
    leaves.abort();
    await rejectsCode('INTERRUPTED', asked);
    await waitUntilSeenBy(agent);
    scene.gate.open();
    assert.equal((await pull.ended).generation, 3);
    // A request of now runs after the queued one.
    await agent.ask({ type: 'forget', by: 'ben' });
    assert.deepEqual(fs.readdirSync(generations).sort(), ['1', '2', '3'], 'none was made again');
  });

  it('completes when it had started', longCase, async () => {
    using dir = tempDir();
    const scene = await begin(dir);
    await using agent = scene.agent;
    scene.gate.close();
    await scene.site.repository.publish(zone(3));
    const leaves = new AbortController();
    const asked = agent.ask({ type: 'pull', force: false, by: 'anna' }, leaves.signal);
    await scene.gate.reached();
    leaves.abort();
    await rejectsCode('INTERRUPTED', asked);
    await waitUntilSeenBy(agent);
    scene.gate.open();
    await agent.hasEnded(3);
    assert.equal(active(scene.site), 'version 3\n');
  });
});

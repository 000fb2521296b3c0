// A running agent beside processes that use an old generation, with a private mount namespace and without: the generation stays
// complete through many updates, `writ status` names its user, and it is collected after the process has ended.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { listGenerations, listTrees } from '../../../src/agent/generations/generations.js';
import type { GenerationUserStatus } from '../../../src/core/status/status.js';
import { type AgentInProcess, type AgentSite, agentSite } from '../../kit/agent/agent-in-process.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { onDisk, tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';

const keep = { keep: { generations: 2, grace: '0s' } };

interface HolderProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  end(): Promise<void>;
}

/** Runs the script, which prints `ready` and then becomes `sleep`. */
async function startHolder(argv: readonly string[], cwd: string): Promise<HolderProcess> {
  const [program = '', ...args] = argv;
  const child = spawn(program, args, { cwd, stdio: ['ignore', 'pipe', 'inherit'] });
  const closed = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await new Promise((resolve, reject) => {
    child.stdout.once('data', resolve);
    child.once('close', () => reject(new Error('the holder ended early')));
  });
  await until(() => fs.readFileSync(`/proc/${child.pid}/comm`, 'utf8') === 'sleep\n');
  const end = async (): Promise<void> => {
    child.kill('SIGKILL');
    await closed;
  };
  return { child, end, [Symbol.asyncDispose]: end };
}

async function publishAndPull(site: AgentSite, agent: AgentInProcess, version: number): Promise<void> {
  await site.repository.publish({ 'block.rpz': `version ${version}\n`, 'views/eu': `${version}` });
  assert.equal((await agent.pull()).outcome, 'activated');
}

/** Advances the time repeatedly: a collection that is due during a cycle waits for the next turn. */
async function advanceUntil(site: AgentSite, condition: () => boolean): Promise<void> {
  await site.clock.advance(301_000);
  await until(async () => {
    await site.clock.advance(5000);
    return condition();
  });
}

function heldOf(json: Readonly<Record<string, unknown>>): readonly GenerationUserStatus[] {
  return (json['held'] ?? []) as readonly GenerationUserStatus[];
}

describe('a held generation', longCase, () => {
  it(
    'keeps its full tree in a private mount namespace until the mount is gone',
    needs('unshare', 'util-linux'),
    async () => {
      using dir = tempDir(onDisk());
      const site = agentSite(dir, keep);
      const { paths, configPath } = site;
      await site.repository.publish({ 'block.rpz': 'version 1\n', 'views/eu': '1' });
      await using agent = site.start();
      await agent.hasEnded(1);
      const mountPoint = dir.join('jail');
      fs.mkdirSync(mountPoint);
      const root = process.getuid?.() === 0 ? [] : ['--map-root-user'];
      const script = `mount --bind "${fs.realpathSync(join(paths.current, 'dns-edge'))}" "${mountPoint}" && echo ready && exec sleep 600`;
      await using holder = await startHolder(['unshare', '--mount', ...root, 'sh', '-c', script], '/');
      const seen = (name: string): string =>
        fs.readFileSync(`/proc/${holder.child.pid}/root${mountPoint}/${name}`, 'utf8');
      for (let version = 2; version <= 7; version += 1) {
        await publishAndPull(site, agent, version);
        assert.deepEqual([seen('block.rpz'), seen('views/eu')], ['version 1\n', '1'], `after ${version}`);
      }
      assert.deepEqual(listGenerations(paths), [1, 6, 7]);
      assert.equal(
        fs.readFileSync(join(paths.generations, '1', 'dns-edge', 'block.rpz'), 'utf8'),
        'version 1\n',
      );

      const json = jsonOf(await runWrit(['status', '--json', '--config', configPath]));
      const [held, ...others] = heldOf(json);
      const { sinceMs, ...rest } = held ?? { sinceMs: 0 };
      const pid = holder.child.pid;
      assert.deepEqual(rest, {
        generation: 1,
        bundle: 'dns-edge',
        what: 'mount',
        path: mountPoint,
        pid,
        command: 'sleep',
      });
      assert.equal(sinceMs, site.clock.nowMs(), 'the time of the second release');
      assert.deepEqual(others, []);
      const human = await runWrit(['status', '--config', configPath]);
      assert.match(
        human.stdout,
        new RegExp(`kept +generation 1, .*: sleep \\(pid ${pid}\\) mounted at ${mountPoint}`),
      );

      await holder.end();
      await advanceUntil(site, () => listGenerations(paths).length === 2);
      assert.deepEqual(listGenerations(paths), [6, 7]);
      assert.equal(listTrees(paths).length, 2);
      assert.equal('held' in jsonOf(await runWrit(['status', '--json', '--config', configPath])), false);
    },
  );

  it('is kept for a working directory, and reported without an agent too, except to other users', async () => {
    using dir = tempDir(onDisk());
    const site = agentSite(dir, keep);
    const { paths, configPath } = site;
    await site.repository.publish({ 'block.rpz': 'version 1\n', 'views/eu': '1' });
    // Ended also where an assertion below fails: a running agent would keep the process of the tests.
    await using agent = site.start();
    await agent.hasEnded(1);
    await using holder = await startHolder(['sh', '-c', 'echo ready; exec sleep 600'], paths.current);
    for (let version = 2; version <= 4; version += 1) await publishAndPull(site, agent, version);
    await advanceUntil(site, () => fs.readFileSync(paths.status, 'utf8').includes('"held"'));
    const [notified] = heldOf(JSON.parse(fs.readFileSync(paths.status, 'utf8')) as Record<string, unknown>);
    assert.deepEqual(Object.keys(notified ?? {}).sort(), ['generation', 'sinceMs', 'what']);
    agent.stop();
    await agent.ended;
    const offline = heldOf(jsonOf(await runWrit(['status', '--json', '--config', configPath])));
    assert.deepEqual(
      offline.map(({ generation, what, pid }) => [generation, what, pid]),
      [[1, 'cwd', holder.child.pid]],
    );
    await holder.end();
    // The metadata has expired by the clock of this machine: collection does not depend on the outcome of a pull.
    await runWrit(['pull', '--config', configPath]);
    assert.deepEqual(listGenerations(paths), [3, 4]);
  });
});

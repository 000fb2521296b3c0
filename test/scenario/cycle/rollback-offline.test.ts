// A rollback needs nothing but this host: the repository is gone and there is no network, with an agent and without.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { CycleResult } from '../../../src/core/cycle/cycle-report.js';
import { agentSite } from '../../kit/agent/agent-in-process.js';
import { installHost } from '../../kit/agent/installed-host.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { needs } from '../../kit/programs/real-programs.js';

describe('a rollback without server and network', longCase, () => {
  it('activates any retained generation by the command alone', needs('unshare', 'util-linux'), async () => {
    using host = await installHost();
    assert.equal((await host.writ('pull')).exitCode, 0);
    const active = (): string => fs.readFileSync(join(host.paths.current, 'dns-edge', 'block.rpz'), 'utf8');
    fs.rmSync(host.repository, { recursive: true });
    const root = fs.readdirSync(join(host.paths.state, 'trust', 'roots')).sort()[0] ?? '';
    host.configure({
      repository: pathToFileURL(host.repository).href,
      root: join(host.paths.state, 'trust', 'roots', root),
    });
    const offline = process.getuid?.() === 0 ? ['unshare', '--net'] : ['unshare', '--net', '--map-root-user'];
    for (const [args, version] of [
      [[], 1],
      [['2'], 2],
      [['1'], 1],
    ] as const) {
      const run = await host.writUnder(offline, 'rollback', ...args, '--reason', 'test', '--json');
      assert.equal(run.exitCode, 0, run.stdout + run.stderr);
      assert.deepEqual([jsonOf(run)['outcome'], active()], ['activated', `version ${version}\n`]);
    }
    const gone = await host.writUnder(offline, 'rollback', '7', '--reason', 'test', '--json');
    assert.deepEqual([gone.exitCode, active()], [2, 'version 1\n']);
  });

  it('activates any retained generation through the running agent', async () => {
    using dir = tempDir();
    const site = agentSite(dir, { keep: { generations: 5 } });
    await site.repository.publish({ 'block.rpz': 'version 1\n' });
    await using agent = site.start();
    await agent.hasEnded(1);
    for (const version of [2, 3]) {
      await site.repository.publish({ 'block.rpz': `version ${version}\n` });
      await agent.pull();
    }
    fs.rmSync(site.repository.directory, { recursive: true });
    const active = (): string => fs.readFileSync(join(site.paths.current, 'dns-edge', 'block.rpz'), 'utf8');
    for (const [generation, version] of [
      [1, 1],
      [3, 3],
      [2, 2],
    ] as const) {
      const answers = await agent.ask({ type: 'rollback', generation, by: 'anna' });
      const end = answers.at(-1) as CycleResult;
      assert.deepEqual([end.outcome, end.exitCode, active()], ['activated', 0, `version ${version}\n`]);
    }
    const failed = await agent.pull();
    assert.deepEqual([failed.outcome, active()], ['failed', 'version 2\n']);
  });
});

// A log or a progress output without a reader: the policy of the host moves as before.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { type LossyStreams, lossyShell, runLossyWrit } from '../../kit/cli/lossy-text.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

/** Runs an agent on such streams while `inspect` examines it, and asserts that SIGTERM alone ended it. */
async function withLossyAgent(
  dir: TempDir,
  streams: LossyStreams,
  inspect: (site: ReturnType<typeof writSite>, pid: number) => Promise<void>,
): Promise<void> {
  const site = writSite(dir);
  const [shell = '', ...rest] = lossyShell(streams);
  const args = [...rest, process.execPath, writProgram, 'agent', '--config', site.config];
  const agent = spawn(shell, args, { stdio: 'ignore' });
  const ended = once(agent, 'exit');
  try {
    await until(async () => agent.exitCode !== null || (await site.json('status'))['agent'] === 'run');
    await inspect(site, agent.pid ?? 0);
    agent.kill('SIGTERM');
    assert.deepEqual(await ended, [0, null]);
  } finally {
    if (agent.exitCode === null) agent.kill('SIGKILL');
  }
}

describe('an agent', () => {
  it('continues when its log is full, and counts the lost lines in its status', async () => {
    using dir = tempDir();
    await withLossyAgent(dir, { stderr: 'full' }, async (site) => {
      await site.repository.publish({ 'block.rpz': 'one\n' });
      assert.equal((await site.json('pull'))['exitCode'], 0);
      const status = await site.json('status');
      const { lines, code } = status['logLosses'] as { readonly lines: number; readonly code: string };
      assert.equal(status['generation'], 1);
      assert.equal(code, 'ENOSPC');
      assert.ok(lines > 3, String(lines));
      const human = await site.writ('status');
      assert.match(
        human.stdout,
        / {2}log {7}\d+ lines since the start of the agent could not be written \[ENOSPC\]\n/,
      );
    });
  });

  it('with closed streams does not write its log into the files that it opens', longCase, async () => {
    using dir = tempDir();
    await withLossyAgent(dir, { stdout: 'closed', stderr: 'closed' }, async (site, pid) => {
      const targets = [1, 2].map((fd) => fs.readlinkSync(`/proc/${pid}/fd/${fd}`));
      assert.deepEqual(targets, ['/dev/null', '/dev/null']);
      await site.repository.publish({ 'block.rpz': 'one\n' });
      assert.equal((await site.json('pull'))['exitCode'], 0);
      assert.equal((await site.json('status'))['generation'], 1);
      const ledger = fs.readFileSync(join(site.state, 'ledger.json'), 'utf8');
      assert.equal(typeof JSON.parse(ledger), 'object');
      assert.equal('logLosses' in (await site.json('status')), false);
    });
  });
});

describe('pull', longCase, () => {
  it('activates a release with exit 0 and no journal, at any line at which its reader ends', async () => {
    for (const lines of [0, 4, 6]) {
      using dir = tempDir();
      const site = writSite(dir);
      await site.repository.publish({ 'block.rpz': 'one\n' });
      const args = ['pull', '--config', site.config];
      const { exitCode } = await runLossyWrit(args, { cwd: dir.path, streams: { stderr: 'gone', lines } });
      assert.equal(exitCode, 0, `${lines} lines`);
      assert.equal(fs.existsSync(join(site.state, 'journal.json')), false);
      assert.deepEqual((await site.json('status'))['generation'], 1);
    }
  });
});

describe('status --watch', longCase, () => {
  it('exits 1 when its reader has ended', async () => {
    using dir = tempDir();
    const site = writSite(dir);
    await using _agent = await site.agent();
    const args = ['status', '--watch', '--json', '--config', site.config];
    const { exitCode } = await runLossyWrit(args, { cwd: dir.path, streams: { stdout: 'gone' } });
    assert.equal(exitCode, 1);
  });
});

// A repository that a clock ahead of its time has signed, as people meet it: publish and refresh go on and warn, and each
// command that looks after it names the way out.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeHealth } from '../../../src/server/health.js';
import { createRepositoryView } from '../../../src/server/resign/repository-view.js';
import { writ } from '../../kit/cli/publisher-cli.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { fakeClock } from '../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { publishedHost } from '../../kit/repository/published-host.js';
import { sampleRepository } from '../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;

async function signedAhead(dir: TempDir, byMs: number): Promise<void> {
  const clock = fakeClock({ nowMs: Date.now(), mode: 'skip' });
  const repository = sampleRepository(dir, { clock, rootKeys: 1, rootThreshold: 1 });
  clock.setWallTime(Date.now() + byMs);
  await repository.publish({ a: 'ahead' });
}

describe('a repository that was signed 30 days ahead', () => {
  it('takes the next publish and the next refresh, which warn', async () => {
    using dir = tempDir();
    await signedAhead(dir, 30 * dayMs);
    writeTree(dir.join('policy'), { a: 'right' });
    const args = [
      'policy',
      '--repository',
      'repo',
      '--keys',
      'keys',
      '--bundle',
      'dns-edge',
      '--revision',
      'r2',
    ];
    const published = await writ(dir, 'publish', ...args);
    assert.equal(published.exitCode, 0, published.stderr);
    assert.match(published.stderr, /this clock is (29|30) d behind the newest signature/);
    const refreshed = await writ(dir, 'refresh', '--repository', 'repo', '--keys', 'keys');
    assert.equal(refreshed.exitCode, 0, refreshed.stderr);
    assert.match(refreshed.stderr, /behind the newest signature/);
  });

  it('is told by repo status, repo check and healthz, with what ends it', async () => {
    using dir = tempDir();
    await signedAhead(dir, 30 * dayMs);
    const status = await writ(dir, 'repo', 'status', '--repository', 'repo');
    assert.equal(status.exitCode, 1);
    assert.match(status.stdout, /^WARNING the repository was signed by a clock .*SIGNED_AHEAD/);
    assert.match(status.stdout, /replace the timestamp key/);
    const json = jsonOf(await writ(dir, 'repo', 'status', '--repository', 'repo', '--json'));
    assert.ok(Number(json['signedAheadMs']) > 29 * dayMs);
    const check = jsonOf(await writ(dir, 'repo', 'check', '--repository', 'repo', '--json'));
    const problems = check['problems'] as { code: string }[];
    assert.deepEqual(
      problems.map(({ code }) => code),
      ['SIGNED_AHEAD'],
    );
    const state = createRepositoryView(dir.join('repo')).read();
    const health = judgeHealth({ state, nowMs: Date.now() });
    assert.deepEqual([health.status, health.reasons.map(({ code }) => code)], ['warning', ['SIGNED_AHEAD']]);
  });

  it('is no news where clocks only differ by seconds', async () => {
    using dir = tempDir();
    await signedAhead(dir, 20_000);
    assert.equal((await writ(dir, 'repo', 'status', '--repository', 'repo')).exitCode, 0);
    assert.equal((await writ(dir, 'repo', 'check', '--repository', 'repo')).exitCode, 0);
    const state = createRepositoryView(dir.join('repo')).read();
    assert.equal(judgeHealth({ state, nowMs: Date.now() }).status, 'ok');
  });
});

describe('a host whose clock was never set', () => {
  it('takes a release by the time that was signed with it, the first and the next', async () => {
    using dir = tempDir();
    using site = publishedHost(dir, { bundles: [{ name: 'dns-edge' }], nowMs: 0 });
    for (const content of ['one', 'two']) {
      await site.repository.publish({ 'p.yaml': content });
      await site.host.sync();
      assert.equal(site.host.read('dns-edge/p.yaml'), content);
    }
    assert.equal(site.host.host.client.status()?.clockFloorMs, site.clock.nowMs());
  });
});

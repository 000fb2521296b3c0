// `writ diff`: between retained generations without a server, and against the server without a change of the host.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { directoryState } from '../../kit/assert/directory-state.js';
import { longCase } from '../../kit/assert/long-case.js';
import { until } from '../../kit/assert/until.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { httpFixture } from '../../kit/net/http-fixture.js';

const zone = (version: number) => ({
  'block.rpz': `; zone\nversion ${version}\n`,
  'views/eu.yaml': 'eu: 1\n',
});

/** A host at generation 2. */
async function siteWithTwo(dir: TempDir): Promise<WritSite> {
  const site = writSite(dir);
  for (const version of [1, 2]) {
    await site.repository.publish(zone(version));
    assert.equal((await site.writ('pull')).exitCode, 0);
  }
  return site;
}

const leftovers = (): string[] => fs.readdirSync(tmpdir()).filter((name) => name.startsWith('writ-diff-'));

describe('writ diff', () => {
  it('compares retained generations without a server', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithTwo(dir);
    fs.rmSync(site.repository.directory, { recursive: true });
    const { exitCode, stdout, stderr } = await site.writ('diff');
    assert.equal(exitCode, 1, stderr);
    assert.equal(
      stdout.replace(/ \([^)]*\)\n/, '\n'),
      [
        'DIFFERENT  generation 1 -> 2: 1 bundle, 1 changed, 0 new, 0 removed',
        '  dns-edge 1 -> 2',
        '    changed  block.rpz  17 B -> 17 B',
        '      @@ -1 +1 @@',
        '       ; zone',
        '      -version 1',
        '      +version 2',
        '',
      ].join('\n'),
    );
    const same = await site.writ('diff', '2', '2');
    assert.deepEqual([same.exitCode, same.stdout], [0, 'SAME  generation 2 -> 2\n']);
    assert.ok(!(await site.writ('diff', '2', '1', '--stat')).stdout.includes('version'));
  });

  it('compares with the generation that was rolled back after a rollback', async () => {
    using dir = tempDir();
    const site = await siteWithTwo(dir);
    assert.equal((await site.writ('rollback')).exitCode, 0);
    const { exitCode, stdout, stderr } = await site.writ('diff', '--stat');
    assert.equal(exitCode, 1, stderr);
    assert.match(stdout, /^DIFFERENT {2}generation 2 -> 1: /);
  });

  it('exits 2, never 1, when it cannot compare', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithTwo(dir);
    for (const args of [['7'], ['one'], ['1', '--server']]) {
      const { exitCode, stdout } = await site.writ('diff', ...args, '--json');
      assert.deepEqual([exitCode, JSON.parse(stdout).code], [2, 'USAGE'], args.join(' '));
    }
    fs.rmSync(site.repository.directory, { recursive: true });
    const unreached = await site.writ('diff', '--server', '--json');
    const { code, type, exitCode } = JSON.parse(unreached.stdout) as Record<string, unknown>;
    assert.deepEqual([unreached.exitCode, type, exitCode], [2, 'diff.result', 2]);
    assert.notEqual(code, 'USAGE');
    assert.deepEqual(leftovers(), []);
  });

  it('exits 130 with INTERRUPTED, not 2, when it is interrupted', async () => {
    using dir = tempDir();
    await using silent = await httpFixture(() => undefined);
    await using diff = writSite(dir, { repository: silent.url }).start('diff', '--server', '--json');
    await until(() => silent.requests.length > 0);
    diff.child.kill('SIGINT');
    const { exitCode, stdout } = await diff.ended;
    assert.deepEqual([exitCode, JSON.parse(stdout).code], [130, 'INTERRUPTED']);
  });

  it('prints what the server would change while an agent runs, and changes nothing', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithTwo(dir);
    await using _agent = await site.agent();
    assert.deepEqual(await site.json('diff', '--server'), {
      schema: 1,
      type: 'diff.result',
      outcome: 'same',
      exitCode: 0,
      from: 2,
      to: 'server',
      bundles: [],
      notListed: [],
    });
    await site.repository.publish({ ...zone(3), 'new.rpz': 'a\u001b[31mb\n' });
    const before = directoryState(site.state);
    const { bundles, outcome } = await site.json('diff', '--server');
    assert.deepEqual(directoryState(site.state), before);
    assert.equal(outcome, 'different');
    const [bundle] = bundles as Record<string, unknown>[];
    const { fromSerial, toSerial, added, removed, changed } = bundle ?? {};
    assert.deepEqual([fromSerial, toSerial, added, removed, changed], [2, 3, 1, 0, 1]);
    assert.deepEqual(leftovers(), []);
  });

  it('downloads no archive of a release that this host has', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithTwo(dir);
    fs.rmSync(join(site.repository.directory, 'targets'), { recursive: true });
    const { outcome, bundles } = await site.json('diff', '--server');
    assert.deepEqual([outcome, bundles], ['same', []]);
  });

  it('escapes control characters of files', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithTwo(dir);
    await site.repository.publish({ ...zone(2), 'block.rpz': '; zone\nversion \u001b[2Jx\u202e\u0007\n' });
    const { stdout } = await site.writ('diff', '--server');
    assert.ok(stdout.includes('+version \\u{1b}[2Jx\\u{202e}\\u{7}'), stdout);
    assert.ok(!stdout.includes('\u001b'));
  });

  it('prints no content of a file that is damaged on disk', longCase, async () => {
    using dir = tempDir();
    const site = await siteWithTwo(dir);
    fs.writeFileSync(join(site.state, 'policy/current/dns-edge/block.rpz'), '; zone\nversion X\n');
    const { stdout } = await site.writ('diff');
    assert.match(stdout, /changed {2}block\.rpz {2}17 B -> 17 B, damaged on disk\n/);
    assert.ok(!stdout.includes('version X'));
  });

  it(
    'exits 2 with METADATA_ROLLBACK for a server with older metadata than this host has',
    longCase,
    async () => {
      using dir = tempDir();
      const site = writSite(dir);
      await site.repository.publish(zone(1));
      fs.cpSync(site.repository.directory, dir.join('old'), { recursive: true });
      await site.repository.publish(zone(2));
      assert.equal((await site.writ('pull')).exitCode, 0);
      fs.rmSync(site.repository.directory, { recursive: true });
      fs.cpSync(dir.join('old'), site.repository.directory, { recursive: true });
      const { code, exitCode } = await site.json('diff', '--server');
      assert.deepEqual([exitCode, code], [2, 'METADATA_ROLLBACK']);
    },
  );

  it('exits 2 with USAGE on a host that never pulled', async () => {
    using dir = tempDir();
    const site = writSite(dir);
    for (const args of [['1', '2'], ['1'], []]) {
      const { code, exitCode } = await site.json('diff', ...args);
      assert.deepEqual([exitCode, code], [2, 'USAGE'], args.join(' '));
    }
  });
});

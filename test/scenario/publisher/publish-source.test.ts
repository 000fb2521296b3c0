// `writ publish` as a person types it: what it refuses of SOURCE, and what it warns of, in both forms of its answer.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { madeHere, v1, writ } from '../../kit/cli/publisher-cli.js';
import { jsonOf, type WritRun } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';

function publish(dir: TempDir, source: string, ...args: readonly string[]): Promise<WritRun> {
  const place = ['--repository', 'repo', '--keys', 'keys', '--bundle', 'own'];
  return writ(dir, 'publish', source, ...place, ...args);
}

describe('writ publish', () => {
  it('refuses SOURCE with the keys and the repository in it, also where --exclude leaves them out', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('policy'), v1);
    fs.symlinkSync('policy', dir.join('link'));
    for (const args of [
      [],
      ['--exclude', '/keys', '--exclude', '/repo'],
      ['--include', '*'],
      ['--dry-run'],
    ]) {
      const { code, exitCode } = jsonOf(await publish(dir, '.', ...args, '--json'));
      assert.deepEqual([code, exitCode], ['SOURCE_NOT_APART', 2]);
    }
    fs.writeFileSync(dir.join('policy/pass'), 'passphrase');
    const passphrase = ['--passphrase-file', 'policy/pass', '--json'];
    assert.equal(jsonOf(await publish(dir, 'link', ...passphrase))['code'], 'SOURCE_NOT_APART');
    assert.equal(fs.existsSync(dir.join('repo/targets/own')), false);
  });

  it('refuses a copy of its own keys, and prints no part of them', async () => {
    using dir = tempDir();
    madeHere(dir);
    fs.cpSync(dir.join('keys'), dir.join('policy/copied'), { recursive: true });
    writeTree(dir.join('policy'), v1);
    const run = await publish(dir, 'policy', '--include', '*', '--json');
    const { code, facts } = jsonOf(run) as {
      code: string;
      facts: { secrets: { path: string; line: number }[] };
    };
    assert.equal(code, 'CONTENT_SECRET');
    const keys = fs.readdirSync(dir.join('keys')).filter((name) => name.endsWith('.key'));
    assert.deepEqual(
      facts.secrets.map(({ path, line }) => [path, line]),
      keys.sort().map((name) => [`copied/${name}`, 2]),
    );
    for (const name of keys) {
      const file = JSON.parse(fs.readFileSync(dir.join('keys', name), 'utf8')) as Record<string, unknown>;
      for (const secret of [file['secret'], file['box']])
        if (typeof secret === 'string') assert.ok(!`${run.stdout}${run.stderr}`.includes(secret));
    }
  });

  it('publishes a file with a secret that --include names', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('policy'), {
      ...v1,
      'tls/server.pem': `-----${'BEGIN'} PRIVATE KEY-----\n${'MIIEvQIB'.repeat(10)}\n`,
    });
    const refused = await publish(dir, 'policy');
    assert.equal(refused.exitCode, 2);
    assert.match(
      refused.stderr,
      /^error\[CONTENT_SECRET\]: \S+policy: tls\/server\.pem:1 contains a private key: /,
    );
    assert.equal((await publish(dir, 'policy', '--include', '/tls/server.pem')).exitCode, 0);
  });

  it('warns of unused patterns, empty directories, modes and hard links, for people and in JSON', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('policy'), {
      ...v1,
      'empty/': '',
      '.writignore': 'Block.rpz\n',
      one: '1',
      private: 'p',
    });
    fs.chmodSync(dir.join('policy/private'), 0o600);
    fs.linkSync(dir.join('policy/one'), dir.join('policy/two'));
    const expected = [
      'warning: 1 pattern to leave files out matched nothing: .writignore:1: Block.rpz',
      'warning: 1 directory without a file left out: empty',
      'warning: 1 file with a mode that hosts will not have: private (0600, on hosts 0644)',
      'warning: 2 files with several names (hard links), separate files on hosts: one, two',
    ];
    const details = {
      unusedPatterns: ['.writignore:1: Block.rpz'],
      droppedDirectories: ['empty'],
      changedModes: [{ path: 'private', mode: '0600', hostMode: '0644' }],
      hardLinks: ['one', 'two'],
    };
    // What would be published, is published, and is there already.
    for (const args of [['--dry-run'], [], []]) {
      const run = await publish(dir, 'policy', ...args, '--json');
      const answer = jsonOf(run);
      assert.deepEqual(
        run.stderr
          .trim()
          .split('\n')
          .filter((line) => line.startsWith('warning')),
        expected,
      );
      for (const [member, value] of Object.entries(details)) assert.deepEqual(answer[member], value, member);
    }
  });

  it('refuses symbolic links in SOURCE', async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('policy'), v1);
    fs.symlinkSync('block.rpz', dir.join('policy/sites-enabled'));
    assert.match((await publish(dir, 'policy')).stderr, /SOURCE_REFUSED.*sites-enabled is a link/);
  });
});

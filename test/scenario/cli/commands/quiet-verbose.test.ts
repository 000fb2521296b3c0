// What -q leaves and what -v adds, of the commands that people put into scripts.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writSite } from '../../../kit/agent/writ-site.js';
import { madeHere, writ } from '../../../kit/cli/publisher-cli.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('-q', () => {
  it('leaves nothing of a question that its exit code answers', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off' });
    for (const [command, exitCode] of [
      ['health', 2],
      ['doctor', 2],
    ] as const) {
      const run = await site.writ(command, '-q');
      assert.deepEqual([run.exitCode, run.stdout], [exitCode, ''], command);
    }
    const repository = ['--repository', dir.join('repo')];
    const loud = await writ(dir, 'repo', 'status', ...repository);
    const quiet = await writ(dir, 'repo', 'status', ...repository, '-q');
    assert.deepEqual([quiet.exitCode, quiet.stdout], [loud.exitCode, '']);
    assert.notEqual(loud.stdout, '');
  });

  it('leaves one line of status and of init', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off' });
    assert.match((await site.writ('status', '-q')).stdout, /^[A-Z]+ {2}.*\n$/);
    const made = await writ(dir, 'init', '--repository', 'r', '--keys', 'k', '--no-passphrase', '-q');
    assert.match(made.stdout, /^CREATED repository r .*\n$/);
    assert.equal(made.stderr, '');
  });
});

describe('-v', () => {
  it('says when each step begins, and how long all took', async () => {
    using dir = tempDir();
    madeHere(dir);
    const { stderr } = await writ(dir, 'repo', 'check', '--repository', 'repo', '-v');
    const steps = stderr
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t').slice(1, 3).join(' '));
    assert.deepEqual([steps[0], steps.at(-1)], ['roots begin', 'total ok']);
    const quiet = await writ(dir, 'repo', 'check', '--repository', 'repo', '-v', '-q');
    assert.equal(quiet.stderr, '');
  });
});

// The output of commands in scripts with -q and with -v.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { writSite } from '../../../kit/agent/writ-site.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { madeHere, writ } from '../../../kit/cli/publisher-cli.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('-q', () => {
  it('prints nothing for a command whose exit code is the answer', longCase, async () => {
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

  it('prints one line for status and for init', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off' });
    assert.match((await site.writ('status', '-q')).stdout, /^[A-Z]+ {2}.*\n$/);
    const made = await writ(dir, 'init', '--repository', 'r', '--keys', 'k', '--no-passphrase', '-q');
    assert.match(made.stdout, /^CREATED repository r .*\n$/);
    assert.equal(made.stderr, '');
  });
});

describe('-v', () => {
  it('prints the begin of each step and the total duration', async () => {
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

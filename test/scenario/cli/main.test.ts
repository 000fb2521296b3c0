import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';

describe('writ', () => {
  it('exits 2 for a usage error, and prints it on stderr', async () => {
    const run = await runWritProcess(['no-such-command']);
    assert.equal(run.exitCode, 2);
    assert.equal(run.stdout, '');
    assert.match(run.stderr, /^error\[USAGE\]: .*\nhint: .*\n$/);
  });

  it('prints a usage error as JSON on stdout with --json', async () => {
    const run = await runWritProcess(['no-such-command', '--json']);
    assert.equal(run.exitCode, 2);
    assert.equal(run.stderr, '');
    const { schema, type, exitCode, code } = jsonOf(run);
    assert.deepEqual(
      { schema, type, exitCode, code },
      { schema: 1, type: 'usage.error', exitCode: 2, code: 'USAGE' },
    );
  });

  it('prints the version of the package', async () => {
    const run = await runWritProcess(['--version']);
    assert.equal(run.exitCode, 0);
    assert.match(run.stdout, /^\d+\.\d+\.\d+\n$/);
  });
});

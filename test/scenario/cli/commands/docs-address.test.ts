// The address of an error's page in the output of commands: each kind of failure names the same page.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

const env = { WRIT_DOCS_URL: 'https://docs.example.com/writ/' };
const addressOf = (code: string) => `https://docs.example.com/writ/errors/${code}`;

describe('the address below WRIT_DOCS_URL', () => {
  for (const [what, code, args] of [
    ['a command that failed', 'CONFIG_UNREADABLE', ['pull', '--config', 'none.yaml']],
    [
      'a command whose exit code is the answer',
      'REPOSITORY_INVALID',
      ['repo', 'status', '--repository', 'none'],
    ],
    ['a health check without a configuration', 'CONFIG_UNREADABLE', ['health', '--config', 'none.yaml']],
    ['an unknown flag', 'USAGE', ['pull', '--no-such-flag']],
  ] as const)
    it(`is in the JSON of ${what}`, async () => {
      using dir = tempDir();
      const run = await runWrit([...args, '--json'], { cwd: dir.path, env });
      const { docs, docsUrl } = jsonOf(run);
      assert.deepEqual([docs, docsUrl], [`writ help ${code}`, addressOf(code)]);
    });

  it('is the last line of an error, after the command that prints the same page', async () => {
    using dir = tempDir();
    const { stderr } = await runWrit(['pull', '--config', 'none.yaml'], { cwd: dir.path, env });
    const address = addressOf('CONFIG_UNREADABLE');
    assert.ok(stderr.endsWith(`\ndocs: writ help CONFIG_UNREADABLE, or ${address}\n`), stderr);
  });
});

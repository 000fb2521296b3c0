// The errors for a wrong path, or before anything is set up: what is wrong, and what to do.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readConfigFile } from '../../../../src/agent/config/config-file.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('a wrong path', () => {
  it('is CONFIG_UNREADABLE for a missing configuration, with --config as the hint and not permissions', () => {
    using dir = tempDir();
    const absent = throwsCode('CONFIG_UNREADABLE', () => readConfigFile(dir.join('agent.yaml')));
    assert.match(absent.message, /agent\.yaml cannot be read: it is not there$/);
    assert.equal(absent.hint, 'Correct --config, or WRIT_CONFIG.');
    mkdirSync(dir.join('folder'));
    const folder = throwsCode('CONFIG_UNREADABLE', () => readConfigFile(dir.join('folder')));
    assert.match(folder.message, /it is not a regular file$/);
  });

  it('is REPOSITORY_INVALID for a path without a repository, in every command', async () => {
    using dir = tempDir();
    mkdirSync(dir.join('empty/metadata'), { recursive: true });
    mkdirSync(dir.join('source'));
    const keys = dir.join('keys');
    assert.equal(
      (await runWrit(['init', '--repository', dir.join('repo'), '--keys', keys, '--no-passphrase'])).exitCode,
      0,
    );
    const source = ['--bundle', 'a', '--from', 'x', '--to', 'y'];
    for (const repository of ['nowhere', 'empty', 'repo/metadata', 'keys']) {
      const place = ['--repository', dir.join(repository), '--keys', keys, '--json'];
      for (const command of [
        ['promote', ...source],
        ['publish', dir.join('source'), '--bundle', 'a'],
        ['repo', 'status'],
      ]) {
        const { code, hint } = jsonOf(await runWrit([...command, ...place]));
        const actual = [code, hint];
        const expected = ['REPOSITORY_INVALID', 'Create one with `writ init`, or correct --repository.'];
        assert.deepEqual(actual, expected, `${command[0]} ${repository}`);
      }
    }
  });
});

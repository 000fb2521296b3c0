import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { userName } from '../../../../src/platform/users/user-id.js';
import { directoryState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { madeHere, writ } from '../../../kit/cli/publisher-cli.js';
import { jsonOf } from '../../../kit/cli/run-writ.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can give a directory away' };
/** The user `nobody`, on every Debian. */
const other = 65534;

describe('root in a repository of another user', asRoot, () => {
  const where = ['--repository', 'repo', '--keys', 'keys'];
  for (const command of [
    ['publish', 'source', ...where, '--bundle', 'access'],
    ['refresh', ...where],
    ['withdraw', ...where, '--bundle', 'access', '--serial', '2'],
    ['promote', ...where, '--bundle', 'access', '--from', 'stable', '--to', 'canary'],
    ['repo', 'export', 'out', '--repository', 'repo'],
  ])
    it(`is refused by writ ${command[0]} ${command[1]}, which writes nothing`, longCase, async () => {
      using dir = tempDir();
      assert.equal((await writ(dir, 'init', ...where, '--no-passphrase')).exitCode, 0);
      for (const text of ['one\n', 'two\n', 'three\n']) {
        writeTree(dir.join('source'), { 'block.rpz': text });
        if (text !== 'three\n') await writ(dir, 'publish', 'source', ...where, '--bundle', 'access');
      }
      fs.rmSync(dir.join('repo', '.lock'));
      assert.equal(spawnSync('chown', ['-R', `${other}:${other}`, dir.join('repo')]).status, 0);
      const before = directoryState(dir.path);
      const run = await writ(dir, ...command, '--json');
      const { code, message, hint } = jsonOf(run);
      assert.deepEqual([run.exitCode, code], [2, 'REPOSITORY_OWNER'], run.stdout);
      const name = userName(other);
      assert.match(String(message), new RegExp(`repo belongs to ${name}, and this is root$`));
      assert.match(String(hint), new RegExp(`runuser -u ${name} -- writ`));
      assert.deepEqual(directoryState(dir.path), before);
    });

  it('is refused by writ init too when the package has created the directory', async () => {
    using dir = tempDir();
    fs.mkdirSync(dir.join('repo'));
    fs.chownSync(dir.join('repo'), other, other);
    const run = await writ(dir, 'init', ...where, '--no-passphrase', '--json');
    assert.equal(jsonOf(run)['code'], 'REPOSITORY_OWNER');
    assert.deepEqual(fs.readdirSync(dir.path), ['repo']);
  });

  it('names setpriv with the numeric id for a user without a name', async () => {
    using dir = tempDir();
    madeHere(dir);
    const [repository = ''] = fs
      .readdirSync(dir.path)
      .filter((name) => fs.existsSync(dir.join(name, 'metadata')));
    fs.chownSync(dir.join(repository), 54_321, 54_321);
    const run = await writ(dir, 'refresh', '--repository', repository, '--keys', 'keys', '--json');
    assert.match(String(jsonOf(run)['hint']), /setpriv --reuid=54321 --clear-groups writ/);
  });
});

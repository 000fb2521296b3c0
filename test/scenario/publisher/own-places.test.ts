// The check of paths that every command of a publisher passes before it opens keys or a repository.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { commands } from '../../../src/cli/run.js';
import { longCase } from '../../kit/assert/long-case.js';
import { madeHere, writ } from '../../kit/cli/publisher-cli.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

/** Each command of a publisher that names keys or a repository, with what it needs beside them. */
const words: Readonly<Record<string, readonly string[]>> = {
  init: ['init', '--no-passphrase', '--yes'],
  publish: ['publish', 'policy', '--bundle', 'own'],
  withdraw: ['withdraw', '--bundle', 'own', '--serial', '1'],
  promote: ['promote', '--bundle', 'own', '--from', 'a', '--to', 'b'],
  delegate: ['delegate', 'team', '--paths', 'own/*'],
  refresh: ['refresh'],
  'repo status': ['repo', 'status'],
  'repo log': ['repo', 'log'],
  'repo check': ['repo', 'check'],
  'repo gc': ['repo', 'gc'],
  'repo export': ['repo', 'export', 'copy'],
  'key new': ['key', 'new', '--name', 'anna', '--no-passphrase'],
  'key list': ['key', 'list'],
  'root rotate': ['root', 'rotate'],
  'root add-key': ['root', 'add-key', 'anna.pub', '--role', 'root'],
  'root remove-key': ['root', 'remove-key', 'anna', '--role', 'root'],
  'root threshold': ['root', 'threshold', '1', '--role', 'root'],
  sign: ['sign', '--role', 'targets'],
  'root commit': ['root', 'commit', 'x.proposal'],
};

async function directoryFlags(name: string): Promise<string[]> {
  const entry = commands.find((one) => one.name === name);
  const flags = Object.values((await entry?.load())?.command.flags ?? {}) as { flags: string }[];
  return ['--keys', '--repository'].filter((flag) => flags.some((one) => one.flags === `${flag} <dir>`));
}

async function codeOf(dir: TempDir, name: string): Promise<unknown> {
  const flags = await directoryFlags(name);
  const places = { '--keys': 'keys', '--repository': 'repo' } as Readonly<Record<string, string>>;
  const args = flags.flatMap((flag) => [flag, places[flag] ?? '']);
  return jsonOf(await writ(dir, ...(words[name] ?? []), ...args, '--json', '--no-input'))['code'];
}

describe('a directory of keys or a repository', () => {
  it('is named by no other command than those of this test, and by the servers', longCase, async () => {
    const named: string[] = [];
    for (const { name } of commands) if ((await directoryFlags(name)).length > 0) named.push(name);
    assert.deepEqual(
      named.filter((name) => !Object.hasOwn(words, name)),
      ['serve'],
    );
  });

  for (const name of Object.keys(words)) {
    it(`that all users can write is refused by writ ${name}`, async () => {
      using dir = tempDir();
      madeHere(dir);
      for (const place of ['keys', 'repo']) {
        const flags = await directoryFlags(name);
        if (!flags.includes(place === 'keys' ? '--keys' : '--repository')) continue;
        fs.chmodSync(dir.join(place), 0o777);
        assert.equal(await codeOf(dir, name), 'PATH_UNSAFE', place);
        fs.chmodSync(dir.join(place), 0o755);
      }
      assert.notEqual(await codeOf(dir, name), 'PATH_UNSAFE');
    });
  }

  it('whose key another user linked is refused, and one key file by its path too', {
    skip: process.getuid?.() === 0 ? false : 'only root can',
  }, async () => {
    using dir = tempDir();
    madeHere(dir);
    fs.renameSync(dir.join('keys/root-1.key'), dir.join('elsewhere.key'));
    fs.symlinkSync('../elsewhere.key', dir.join('keys/root-1.key'));
    const codes = async () => [
      await codeOf(dir, 'key list'),
      jsonOf(await writ(dir, 'key', 'passphrase', 'keys/root-1.key', '--no-passphrase', '--json'))['code'],
    ];
    assert.ok(!(await codes()).includes('PATH_UNSAFE'), 'a link of root is followed');
    fs.lchownSync(dir.join('keys/root-1.key'), 65_534, 65_534);
    assert.deepEqual(await codes(), ['PATH_UNSAFE', 'PATH_UNSAFE']);
  });

  it('may be writable for a server, which must not end after an upgrade', async () => {
    using dir = tempDir();
    madeHere(dir);
    fs.chmodSync(dir.join('repo'), 0o777);
    const args = ['--listen', 'nonsense', '--json'];
    assert.notEqual(jsonOf(await writ(dir, 'serve', '--repository', 'repo', ...args))['code'], 'PATH_UNSAFE');
  });
});

// Each command checks the paths before it opens a directory of a fleet server: the store, and --state.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { commands } from '../../../src/cli/run.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

const nobodyId = 65_534;
const asRoot = { skip: process.getuid?.() === 0 ? false : 'only root can give a store to another user' };

/** Each command with --store, and its other required arguments. */
const argsOf: Readonly<Record<string, readonly string[]>> = {
  'fleet serve': ['--listen', '127.0.0.1:0'],
  'fleet status': [],
  'fleet hosts': [],
  'fleet host': ['web-1'],
  'fleet wait': ['dns', '42'],
  'fleet history': ['dns', '42'],
  'fleet log': [],
  'fleet token': ['create', '--for', 'people'],
};

async function run(dir: TempDir, name: string, ...more: readonly string[]) {
  const args = [...name.split(' '), ...(argsOf[name] ?? []), '--store', 'store', ...more];
  return jsonOf(await runWrit([...args, '--json'], { cwd: dir.path }));
}

describe('a directory of a fleet server', () => {
  it('is an option of the commands of this test only', longCase, async () => {
    const named: string[] = [];
    for (const { name, load } of commands)
      if (Object.hasOwn((await load()).command.flags, 'store')) named.push(name);
    assert.deepEqual(
      named.filter((name) => !Object.hasOwn(argsOf, name)),
      [],
    );
  });

  for (const name of Object.keys(argsOf)) {
    it(`of another user is refused by writ ${name}, which changes nothing there`, asRoot, async () => {
      using dir = tempDir();
      fs.writeFileSync(dir.join('victim'), '', { mode: 0o644 });
      fs.mkdirSync(dir.join('store'), { mode: 0o755 });
      fs.symlinkSync(dir.join('victim'), dir.join('store/fleet.db'));
      for (const path of ['store', 'store/fleet.db']) fs.lchownSync(dir.join(path), nobodyId, nobodyId);
      const { code, hint } = await run(dir, name);
      assert.equal(code, 'PATH_UNSAFE');
      assert.match(String(hint), /runuser -u nobody -- writ fleet/);
      const modes = ['victim', 'store'].map((path) => fs.statSync(dir.join(path)).mode & 0o777);
      assert.deepEqual(modes, [0o644, 0o755]);
    });
  }

  it('of another user for metadata of repositories is refused, and stays empty', {
    ...asRoot,
    ...longCase,
  }, async () => {
    using dir = tempDir();
    fs.writeFileSync(dir.join('root.json'), '{}');
    fs.mkdirSync(dir.join('state'));
    fs.chownSync(dir.join('state'), nobodyId, nobodyId);
    const repository = ['--repository', 'http://127.0.0.1:9/', '--root', 'root.json'];
    const { code, hint } = await run(dir, 'fleet serve', '--state', 'state', ...repository);
    assert.equal(code, 'PATH_UNSAFE');
    assert.match(String(hint), /runuser -u nobody -- writ fleet/);
    assert.deepEqual(fs.readdirSync(dir.join('state')), []);
  });
});

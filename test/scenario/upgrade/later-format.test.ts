// A host that was set back to an older version of Writ: files of the state directory in a format of later. Held to every file
// and every byte: one that is made anew has lost what keeps an older release out.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { sealed } from '../../../src/agent/state/sealed-json.js';
import { type WritSite, writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';

const later = sealed({ writ: 2, serials: 'kept in another place' });
const files = ['ledger.json', 'rejected.json', 'journal.json'];

describe('a host whose state a later version wrote', () => {
  for (const file of files)
    it(`refuses by name, and leaves alone, what it cannot read: ${file}`, async () => {
      using dir = tempDir();
      const site = await pulledOnce(dir);
      fs.writeFileSync(join(site.state, file), later);
      const before = everyByteOf(site.state);
      for (const command of [
        ['pull'],
        ['pull', '--force'],
        ['rollback'],
        ['verify', '--repair'],
        ['agent'],
      ]) {
        const run = await runWritProcess([...command, '--config', site.config]);
        assert.equal(run.exitCode, 2, command.join(' '));
        assert.match(run.stderr, /STATE_TOO_NEW/);
      }
      assert.deepEqual(everyByteOf(site.state), before);
    });

  it('goes on where it was when the later version is back, which knows what it wrote', longCase, async () => {
    using dir = tempDir();
    const site = await pulledOnce(dir);
    const ledger = join(site.state, 'ledger.json');
    const whole = fs.readFileSync(ledger);
    fs.writeFileSync(ledger, later);
    assert.equal((await site.writ('pull')).exitCode, 2);
    fs.writeFileSync(ledger, whole);
    assert.equal((await site.json('pull'))['outcome'], 'unchanged');
    assert.equal((await site.json('status'))['generation'], 1);
  });

  it('says what to do in the answer that programs read', async () => {
    using dir = tempDir();
    const site = await pulledOnce(dir);
    const path = join(site.state, 'ledger.json');
    fs.writeFileSync(path, later);
    const error = await site.json('status');
    assert.equal(error['code'], 'STATE_TOO_NEW');
    assert.deepEqual(error['facts'], { path, expected: 1, actual: 2 });
  });
});

async function pulledOnce(dir: TempDir): Promise<WritSite> {
  const site = writSite(dir, { sandbox: 'off' });
  await site.repository.publish({ 'block.rpz': 'version 1\n' });
  assert.equal((await site.writ('pull')).exitCode, 0);
  return site;
}

/** @returns of each file its name and content; who holds the lock is no state */
function everyByteOf(directory: string): readonly string[] {
  return fs
    .readdirSync(directory, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.name !== 'lock')
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
    .map((path) => `${path} ${fs.lstatSync(path).isFile() ? fs.readFileSync(path, 'base64') : ''}`);
}

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readStoreLocation } from '../../../../src/cli/fleet/store-location.js';
import { throwsCode } from '../../../kit/assert/assert-code.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { runWrit } from '../../../kit/cli/run-writ.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('the location of a store', () => {
  it('is the only line of the file, and appears in no error', () => {
    using dir = tempDir();
    const at = (path: string): string => dir.join(path);
    const secret = 'postgres://me:hush@db/fleet';
    writeFileSync(dir.join('file'), `${secret}\n`);
    assert.equal(readStoreLocation({ storeFile: 'file' }, at), secret);
    assert.equal(readStoreLocation({ store: 'store' }, at), 'store');
    assert.equal(readStoreLocation({}, at), undefined);
    for (const text of ['', '\n', `${secret}\nsecond`, `${secret}\u0000`, 'x'.repeat(5000)]) {
      writeFileSync(dir.join('file'), text);
      const error = throwsCode('USAGE', () => readStoreLocation({ storeFile: 'file' }, at));
      assert.ok(!JSON.stringify([error, error.message]).includes('hush'));
    }
    throwsCode('USAGE', () => readStoreLocation({ storeFile: 'missing' }, at));
    throwsCode('USAGE', () => readStoreLocation({ store: 'store', storeFile: 'file' }, at));
  });

  it('comes from a file for the commands of a fleet, also through its environment variable', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('file'), `${dir.join('store')}\n`);
    const run = (command: string, env: Record<string, string>, ...args: string[]) =>
      runWrit(['fleet', ...command.split(' '), ...args], { cwd: dir.path, env });
    const create = 'token create --for people';
    assert.equal((await run(create, {}, '--store-file', 'file')).exitCode, 0);
    const typed = await run('log', {}, '--store-file', 'file');
    assert.match(typed.stdout, /token/);
    assert.equal((await run('log', { WRIT_FLEET_STORE_FILE: 'file' })).stdout, typed.stdout);
    const both = await run('log', { WRIT_FLEET_STORE_FILE: 'file', WRIT_FLEET_STORE: 'store' });
    assert.match(both.stderr, /WRIT_FLEET_STORE.* are both set/);
    // A flag has priority over the environment, also over that of its alternatives.
    assert.equal(
      (await run('log', { WRIT_FLEET_STORE_FILE: 'gone' }, '--store', 'store')).stdout,
      typed.stdout,
    );
    assert.equal(
      (await run('log', { WRIT_FLEET_STORE: 'gone' }, '--store-file', 'file')).stdout,
      typed.stdout,
    );
  });

  it(
    'of fleet serve, and the address of its webhook, come from files, and appear in no error',
    longCase,
    async () => {
      using dir = tempDir();
      writeFileSync(dir.join('file'), `${dir.path}\n`);
      writeFileSync(dir.join('hook'), 'http://alarms.example.net/hush\n');
      const serve = async (...args: string[]) =>
        (await runWrit(['fleet', 'serve', ...args], { cwd: dir.path })).stderr;
      const opened = await serve('--store-file', 'file', '--listen', '127.0.0.1:0');
      assert.match(opened, /FLEET_STORE_LOCATION/);
      const hook = await serve('--store', 'store', '--webhook-file', 'hook');
      assert.match(hook, /the file of the webhook hook cannot be used/);
      for (const text of [opened, hook]) assert.ok(!text.includes('hush'), text);
      const twice = ['--webhook', 'http://127.0.0.1:1/x', '--webhook-file', 'hook'];
      assert.match(await serve('--store', 'store', ...twice), /give one of them/);
      assert.match(await serve(), /--store is missing/);
    },
  );
});

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { createOnlineSigner } from '../../../../src/cli/repository/online-signer.js';
import { createDurableFs } from '../../../../src/platform/disk/durable-fs.js';
import { takeLock } from '../../../../src/platform/disk/process-lock.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { createKeyFile, readKeyFile, unlockKey } from '../../../../src/publisher/keys/key-file.js';
import { startServer } from '../../../../src/server/server.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { until } from '../../../kit/assert/until.js';
import { jsonOf, runWrit } from '../../../kit/cli/run-writ.js';
import { startWrit } from '../../../kit/cli/writ-process.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { needs } from '../../../kit/programs/real-programs.js';
import { commit, newKey, proposal, signedBy } from '../../../kit/repository/ceremony.js';
import {
  metadataPath,
  type SampleRepository,
  sampleRepository,
} from '../../../kit/repository/sample-repository.js';

const dayMs = 86_400_000;
const onlineFiles = ['snapshot.key', 'timestamp.key'];
const passphrases = { ask: async () => undefined };
const urlPattern = /^LISTENING (http:.+)$/m;

/** Copies key files of the publisher into a directory of their own. */
function copyKeys(
  dir: TempDir,
  repository: SampleRepository,
  name: string,
  files: readonly string[],
): string {
  const directory = dir.join(name);
  fs.mkdirSync(directory);
  for (const file of files) fs.copyFileSync(join(repository.keys, file), join(directory, file));
  return directory;
}

async function timestampVersion(url: string): Promise<number> {
  const response = await fetch(`${url}/metadata/timestamp.json`);
  return ((await response.json()) as { signed: { version: number } }).signed.version;
}

/** Polls, because a process of its own takes the lock for signing. */
function untilTimestampIs(url: string, version: number): Promise<void> {
  return until(async () => (await timestampVersion(url)) === version);
}

describe('a server with the online keys', longCase, () => {
  it('signs nothing with an unsynchronised clock until a publisher has refreshed', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    const keys = { path: copyKeys(dir, repository, 'online', onlineFiles), passphrases };
    const signer = await createOnlineSigner(repository.directory, keys, clock, async () => 'unsynchronised');
    clock.setWallTime(clock.nowMs() + 31 * dayMs);
    for (const _ of [1, 2])
      await assert.rejects(signer.resign(['timestamp'], true), { code: 'CLOCK_UNSURE' });
    // As `writ refresh --clock-is-right` does.
    await repository.refresh();
    await signer.resign(['timestamp'], true);
  });

  it('re-signs after a quarter of the validity period, and not before', async () => {
    using dir = tempDir();
    const clock = fakeClock();
    const repository = sampleRepository(dir, { clock });
    await repository.publish({ a: 'a' });
    const keys = { path: copyKeys(dir, repository, 'online', onlineFiles), passphrases };
    const signer = await createOnlineSigner(repository.directory, keys, clock);
    const options = { repository: repository.directory, host: '127.0.0.1', port: 0, watchEveryMs: 1000 };
    const server = await startServer({ ...options, clock, signer });
    try {
      clock.setWallTime(clock.nowMs() + 1.75 * dayMs - 2000);
      await clock.advance(1000);
      assert.equal(await timestampVersion(server.url), 2);
      await clock.advance(1000);
      await untilTimestampIs(server.url, 3);
      assert.ok(!fs.existsSync(metadataPath(repository, '3.snapshot.json')));

      while (clock.sleeping() === 0) await setTimeout(5);
      clock.setWallTime(clock.nowMs() + 6 * dayMs);
      await clock.advance(1000);
      await untilTimestampIs(server.url, 4);
      assert.ok(fs.existsSync(metadataPath(repository, '3.snapshot.json')));
      const health = await fetch(`${server.url}/healthz`);
      assert.equal(((await health.json()) as { status: string }).status, 'ok');
    } finally {
      await server.close();
    }
  });

  it('warns in /healthz from the start that its user cannot write, before it has to sign', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const online = copyKeys(dir, repository, 'online', onlineFiles);
    const isRoot = process.getuid?.() === 0;
    // Root can write everywhere. Writ refuses root in a repository of another user.
    if (isRoot) fs.chownSync(repository.directory, 65_534, 65_534);
    else fs.chmodSync(join(repository.directory, 'metadata'), 0o500);
    const args = ['serve', '--repository', repository.directory, '--listen', '127.0.0.1:0', '--keys', online];
    await using server = startWrit(args);
    const [, url = ''] = await server.waitForStdout(urlPattern);
    await server.waitForStderr(/would not be able to re-sign/);
    const health = (await (await fetch(`${url}/healthz`)).json()) as {
      status: string;
      reasons: { code: string }[];
    };
    const code = isRoot ? 'REPOSITORY_OWNER' : 'DISK_DENIED';
    assert.deepEqual([health.status, health.reasons.map((one) => one.code)], ['warning', [code]]);
  });

  it('publishes a release that was signed without these keys at the next request, and signs nothing invalid', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const online = copyKeys(dir, repository, 'online', onlineFiles);
    const offline = copyKeys(dir, repository, 'offline', ['targets.key', 'root.json']);
    const args = ['serve', '--repository', repository.directory, '--listen', '127.0.0.1:0', '--keys', online];
    await using server = startWrit(args);
    const [, url = ''] = await server.waitForStdout(urlPattern);
    const result = await repository.publish({ a: 'a' }, { keys: offline });
    assert.equal(result.kind, 'waiting');
    await untilTimestampIs(url, 2);
    assert.equal((await fetch(`${url}/metadata/2.snapshot.json`)).status, 200);

    fs.writeFileSync(metadataPath(repository, '3.targets.json'), '{"signatures":[],"signed":{}}');
    await fetch(`${url}/metadata/timestamp.json`);
    await server.waitForStderr(/"code":"REPOSITORY_INVALID".*"cannot re-sign"/);
    assert.equal(await timestampVersion(url), 2);
    assert.match(await (await fetch(`${url}/metrics`)).text(), /resign_total\{result="failure"\} 1/);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).exitCode, 0);
  });

  it('uses new keys from its directory as soon as a root lists them', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const online = copyKeys(dir, repository, 'online', onlineFiles);
    const replace = (['snapshot', 'timestamp'] as const).map((role) => {
      return { role, keys: [newKey(dir, `${role}-2`, 'online')] };
    });
    const proposed = proposal(repository, { replace });
    const args = ['serve', '--repository', repository.directory, '--listen', '127.0.0.1:0', '--keys', online];
    await using server = startWrit(args);
    const [, url = ''] = await server.waitForStdout(urlPattern);
    const signed = await signedBy(repository, proposed, ['root-1.key', 'root-2.key']);
    const result = await commit(repository, signed, { unsignedRoles: 'accepted' });
    assert.deepEqual(result.waiting, ['snapshot', 'timestamp']);
    await untilTimestampIs(url, 2);
    const health = (await (await fetch(`${url}/healthz`)).json()) as { status: string };
    assert.equal(health.status, 'ok');
  });

  it('refuses to sign with KEYS_MISSING when a new root does not list its keys', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const keys = { path: copyKeys(dir, repository, 'online', onlineFiles), passphrases };
    const signer = await createOnlineSigner(repository.directory, keys, systemClock);
    const replace = [{ role: 'snapshot' as const, keys: [newKey(dir, 'snapshot-2', 'elsewhere')] }];
    const signed = await signedBy(repository, proposal(repository, { replace }), [
      'root-1.key',
      'root-2.key',
    ]);
    await commit(repository, signed, { unsignedRoles: 'accepted' });
    await assert.rejects(signer.resign(['snapshot', 'timestamp'], true), { code: 'KEYS_MISSING' });
    assert.ok(!fs.existsSync(metadataPath(repository, '2.snapshot.json')));
  });

  it('refuses to sign with REPOSITORY_LOCKED while another process has the lock', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const offline = copyKeys(dir, repository, 'offline', ['targets.key', 'root.json']);
    const keys = { path: copyKeys(dir, repository, 'online', onlineFiles), passphrases };
    const signer = await createOnlineSigner(repository.directory, keys, systemClock);
    await repository.publish({ a: 'a' }, { keys: offline });
    const path = join(repository.directory, '.lock');
    const lock = await takeLock({
      path,
      holder: 'test',
      waitMs: 0,
      clock: systemClock,
      durable: createDurableFs(),
      code: 'REPOSITORY_LOCKED',
    });
    await assert.rejects(signer.resign(['snapshot', 'timestamp'], true), { code: 'REPOSITORY_LOCKED' });
    lock.release();
    await signer.resign(['snapshot', 'timestamp'], true);
    assert.ok(fs.existsSync(metadataPath(repository, '2.snapshot.json')));
  });

  it('fails at the start with the code for a missing or locked key', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const base = [
      'serve',
      '--repository',
      repository.directory,
      '--listen',
      '127.0.0.1:0',
      '--json',
      '--keys',
    ];
    const codeOf = async (args: readonly string[]): Promise<readonly unknown[]> => {
      const run = await runWrit([...base, ...args]);
      return [jsonOf(run)['code'], run.exitCode];
    };
    const half = copyKeys(dir, repository, 'half', ['snapshot.key']);
    assert.deepEqual(await codeOf([half]), ['KEYS_MISSING', 1]);
    assert.deepEqual(await codeOf([dir.join('none')]), ['KEYS_MISSING', 1]);

    const locked = lockKeys(dir, repository, 'the passphrase');
    fs.writeFileSync(dir.join('wrong'), 'another one\n');
    assert.deepEqual(await codeOf([locked]), ['PASSPHRASE_NEEDED', 2]);
    assert.deepEqual(await codeOf([locked, '--passphrase-file', dir.join('wrong')]), ['PASSPHRASE_WRONG', 1]);
  });

  it('unlocks encrypted keys with a passphrase from a file', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    const locked = lockKeys(dir, repository, 'the passphrase');
    fs.writeFileSync(dir.join('passphrase'), 'the passphrase\n');
    await using server = startWrit([
      ...['serve', '--repository', repository.directory, '--listen', '127.0.0.1:0'],
      ...['--keys', locked, '--passphrase-file', dir.join('passphrase')],
    ]);
    await server.waitForStdout(urlPattern);
    assert.doesNotMatch(server.stdout() + server.stderr(), /the passphrase/);
  });

  it('opens no key file except the two online keys', needs('inotifywait', 'inotify-tools'), async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock });
    await repository.publish({ a: 'a' });
    const offline = copyKeys(dir, repository, 'offline', ['targets.key', 'root.json']);
    // A FIFO as a root key: a process that opens it without O_NONBLOCK hangs.
    spawnSync('mkfifo', [join(repository.keys, 'root-9.key')]);
    const watch = spawn('inotifywait', ['-m', '-q', '-e', 'open', '--format', '%f', repository.keys]);
    let opened = '';
    watch.stdout.on('data', (chunk: Buffer) => {
      opened += chunk.toString();
    });
    try {
      // The watch is active after it reports a read of this process.
      while (!opened.includes('root.json')) {
        fs.readFileSync(join(repository.keys, 'root.json'));
        await setTimeout(10);
      }
      const keys = repository.keys;
      await using server = startWrit([
        ...['serve', '--repository', repository.directory, '--listen', '127.0.0.1:0', '--keys', keys],
      ]);
      const [, url = ''] = await server.waitForStdout(urlPattern);
      await repository.publish({ a: 'b' }, { keys: offline });
      await untilTimestampIs(url, 3);
      server.child.kill('SIGTERM');
      await server.ended;
    } finally {
      watch.kill();
    }
    const keyFiles = new Set(opened.split('\n').filter((name) => name.endsWith('.key')));
    assert.deepEqual([...keyFiles].sort(), onlineFiles);
  });
});

/** The two online keys of a repository under a passphrase. */
function lockKeys(dir: TempDir, repository: SampleRepository, passphrase: string): string {
  const directory = dir.join('locked');
  fs.mkdirSync(directory);
  for (const file of onlineFiles) {
    const plain = readKeyFile(join(repository.keys, file));
    assert.ok(plain);
    const seed = unlockKey(plain, undefined);
    createKeyFile({ path: join(directory, file), seed, passphrase, durableFs: createDurableFs() });
  }
  return directory;
}

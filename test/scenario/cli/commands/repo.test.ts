import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf, runWrit, type WritRun } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { sampleRepository } from '../../../kit/repository/sample-repository.js';

function repo(dir: TempDir, ...args: readonly string[]): Promise<WritRun> {
  return runWrit(['repo', ...args, '--repository', 'repo'], { cwd: dir.path });
}

async function published(dir: TempDir) {
  const repository = sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
  await repository.publish({ file: 'one' });
  await repository.publish({ file: 'two' });
  return repository;
}

describe('writ repo check', longCase, () => {
  it('exits 0 with the verified counts, and 1 with the code of each problem', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const intact = await repo(dir, 'check');
    assert.equal(intact.exitCode, 0, intact.stdout);
    assert.match(intact.stdout, /^INTACT repo verifies: 1 root, 3 roles, 1 archive, /);
    fs.rmSync(`${repository.directory}/targets`, { recursive: true });
    const damaged = await repo(dir, 'check');
    assert.equal(damaged.exitCode, 1);
    assert.match(damaged.stdout, /^DAMAGED repo: 1 problem\n {2}TARGET_MISSING {2}dns-edge\/stable.tar.br\n/);
    assert.match(damaged.stderr, /\troots\tok\t[^\n]*\n[^\n]*\troles\tok\t[^\n]*\n[^\n]*\tarchives\tFAIL\t/);
    const json = jsonOf(await repo(dir, 'check', '--json', '--keys', 'keys'));
    assert.deepEqual(
      (json['problems'] as { code: string }[]).map(({ code }) => code),
      ['TARGET_MISSING'],
    );
  });
});

describe('an incompletely copied repository', () => {
  it('is reported with a hint for the publisher, and a step that did not run is skipped and not ok', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    fs.rmSync(`${repository.directory}/metadata/3.snapshot.json`);
    const check = await repo(dir, 'check');
    assert.equal(check.exitCode, 1);
    assert.match(check.stderr, /\troles\tFAIL\t.*\n.*\tarchives\tskip\tnot checked/);
    const gc = jsonOf(await repo(dir, 'gc', '--yes', '--json'));
    assert.equal(gc['code'], 'REPOSITORY_INVALID');
    assert.match(String(gc['hint']), /^Run `writ repo check`/);
  });
});

describe('writ repo status with the keys of a server', () => {
  it('warns when they cannot re-sign, long before a role expires', async () => {
    using dir = tempDir();
    await published(dir);
    fs.mkdirSync(dir.join('online'));
    const status = (...more: string[]) => repo(dir, 'status', '--keys', 'online', ...more);
    const copy = (name: string) => fs.copyFileSync(dir.join('keys', name), dir.join('online', name));
    assert.equal((await status()).exitCode, 0, 'a directory without an online key is not that of a server');
    copy('snapshot.key');
    const half = await status();
    assert.equal(half.exitCode, 1);
    assert.match(
      half.stdout,
      /^WARNING a server cannot re-sign.* has 0 of the 1 timestamp keys.*\[KEYS_MISSING\]\n/,
    );
    assert.equal((jsonOf(await status('--json'))['cannotResign'] as { code: string }).code, 'KEYS_MISSING');
    fs.copyFileSync(dir.join('keys', 'targets.key'), dir.join('online', 'timestamp.key'));
    assert.equal((await status()).exitCode, 1, 'a file of that name is not yet a key of the root');
    copy('timestamp.key');
    assert.match((await status()).stdout, /^OK every role is fresh\n/);
  });
});

describe('writ repo gc', () => {
  it('prints what it would remove, requires a confirmation, and removes with --yes', async () => {
    using dir = tempDir();
    const repository = await published(dir);
    const flags = ['gc', '--keep', '1', '--grace', '1ms'];
    const files = () => fs.readdirSync(`${repository.directory}/metadata`).length;
    const before = files();
    const dry = await repo(dir, ...flags, '--dry-run');
    assert.match(dry.stdout, /^WOULD REMOVE 5 files, .*\n {2}metadata\/1\.snapshot\.json {2}/);
    assert.match(dry.stdout, /\nNothing was removed\n$/);
    const unasked = await repo(dir, ...flags, '--json');
    assert.deepEqual([unasked.exitCode, jsonOf(unasked)['code']], [2, 'USAGE']);
    assert.equal(files(), before);
    const removed = await repo(dir, ...flags, '--yes');
    assert.match(removed.stdout, /^REMOVED 5 files, /);
    assert.equal(files(), before - 4);
    const again = await repo(dir, ...flags, '--yes');
    assert.equal(again.stdout, 'NOTHING TO REMOVE in repo\n');
    assert.equal((await repo(dir, 'check')).exitCode, 0);
  });
});

describe('writ repo export', () => {
  it('prints the exported releases, their expiry and the repository URL for hosts', async () => {
    using dir = tempDir();
    await published(dir);
    const run = await repo(dir, 'export', 'stick');
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^EXPORTED 1 release to .*\/stick .*\n {2}dns-edge stable serial 2\n/);
    assert.match(run.stdout, /\(timestamp, 7 d\), with repository: file:\/\/\/.*\/stick\/\n$/);
    const inspect = await runWrit(['inspect', 'stick', '--json'], { cwd: dir.path });
    assert.equal(inspect.exitCode, 0, inspect.stdout);
    const elsewhere = await repo(dir, 'export', 'keys', '--json');
    assert.deepEqual([elsewhere.exitCode, jsonOf(elsewhere)['code']], [2, 'REPOSITORY_EXISTS']);
  });
});

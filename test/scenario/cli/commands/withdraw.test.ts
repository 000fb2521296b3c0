import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf, runWrit, type WritRun } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { metadataPath, sampleRepository } from '../../../kit/repository/sample-repository.js';

const places = ['--repository', 'repo', '--keys', 'keys', '--bundle', 'dns-edge'] as const;

function writ(dir: TempDir, command: string, ...args: readonly string[]): Promise<WritRun> {
  return runWrit([command, ...places, ...args], { cwd: dir.path });
}

async function withReleases(dir: TempDir) {
  const repository = sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
  await repository.publish({ file: 'one' }, { revision: 'good' });
  await repository.publish({ file: 'two' });
  return repository;
}

describe('writ withdraw', () => {
  it('prints the new release of each channel, and NOTHING NEW the second time', longCase, async () => {
    using dir = tempDir();
    await withReleases(dir);
    const run = await writ(dir, 'withdraw', '--serial', '2', '--reason', 'view eu');
    assert.equal(run.exitCode, 0, run.stderr);
    assert.equal(
      run.stdout,
      'WITHDRAWN dns-edge 2\n  stable  2 -> 1 (good)\n  Hosts follow at their next poll; an offline host follows when it returns.\n',
    );
    assert.match(run.stderr, /\tsign\tok\ttargets v4, snapshot v4, timestamp v4/);
    const again = await writ(dir, 'withdraw', '--serial', '2');
    assert.deepEqual([again.exitCode, again.stdout], [0, 'NOTHING NEW dns-edge 2 is already withdrawn\n']);
    const json = jsonOf(await writ(dir, 'withdraw', '--serial', '2', '--json'));
    assert.deepEqual([json['type'], json['changed']], ['withdraw.result', false]);
  });

  it('prints WOULD WITHDRAW with --dry-run, and writes nothing', async () => {
    using dir = tempDir();
    const repository = await withReleases(dir);
    const before = fs.readFileSync(metadataPath(repository, 'timestamp.json'));
    const run = await writ(dir, 'withdraw', '--serial', '2', '--dry-run');
    assert.equal(run.stdout, 'WOULD WITHDRAW dns-edge 2\n  stable  2 -> 1 (good)\nNothing was written\n');
    const json = jsonOf(await writ(dir, 'withdraw', '--serial', '2', '--dry-run', '--json'));
    assert.deepEqual(json['channels'], [
      { channel: 'stable', previousSerial: 2, serial: 1, revision: 'good', withdrawn: [2] },
    ]);
    assert.deepEqual(fs.readFileSync(metadataPath(repository, 'timestamp.json')), before);
  });

  it('exits 2 with RELEASE_UNAVAILABLE and a hint when no release is left', async () => {
    using dir = tempDir();
    await withReleases(dir);
    const run = await writ(dir, 'withdraw', '--serial', '2', '--serial', '1');
    assert.equal(run.exitCode, 2);
    assert.match(run.stderr, /error\[RELEASE_UNAVAILABLE\]: .*\nhint: Publish a good tree first/);
    const typed = await writ(dir, 'withdraw', '--serial', 'two', '--json');
    assert.deepEqual([typed.exitCode, jsonOf(typed)['code']], [2, 'USAGE']);
  });

  it('names `writ refresh` when the online keys are missing', async () => {
    using dir = tempDir();
    const { keys } = await withReleases(dir);
    fs.mkdirSync(dir.join('online'));
    fs.renameSync(`${keys}/timestamp.key`, dir.join('online', 'timestamp.key'));
    const run = await writ(dir, 'withdraw', '--serial', '2');
    assert.match(run.stdout, /^SIGNED dns-edge 2 as withdrawn; hosts see it when timestamp is signed\n/);
    assert.match(run.stdout, /\nNext: writ refresh --repository repo --keys DIR /);
    const again = await writ(dir, 'withdraw', '--serial', '2');
    assert.equal(again.exitCode, 0);
    const waits = 'NOTHING NEW dns-edge 2 is already withdrawn; hosts see it when timestamp is signed\n';
    assert.ok(again.stdout.startsWith(waits), again.stdout);
    assert.match(again.stdout, /\nNext: writ refresh --repository repo --keys DIR /);
    const json = jsonOf(await writ(dir, 'withdraw', '--serial', '2', '--json'));
    assert.deepEqual([json['outcome'], json['changed']], ['nothing-new', false]);
    assert.deepEqual(json['missing'], ['timestamp']);
  });
});

describe('writ promote', () => {
  it('prints the promoted release, and NOTHING NEW the second time', longCase, async () => {
    using dir = tempDir();
    const repository = await withReleases(dir);
    await repository.publish({ file: 'three' }, { channel: 'canary', revision: '4f1c2e9' });
    const channels = ['--from', 'canary', '--to', 'stable'];
    const compared = '  compared with 2: 1 file (0 added, 0 removed, 1 changed), 3 B -> 5 B\n';
    const dry = await writ(dir, 'promote', ...channels, '--dry-run');
    assert.equal(
      dry.stdout,
      `WOULD PROMOTE dns-edge canary to stable: serial 2 -> 3 (4f1c2e9)\n${compared}Nothing was written\n`,
    );
    const run = await writ(dir, 'promote', ...channels);
    assert.deepEqual(
      [run.exitCode, run.stdout],
      [0, `PROMOTED dns-edge canary to stable: serial 2 -> 3 (4f1c2e9)\n${compared}`],
    );
    const again = jsonOf(await writ(dir, 'promote', ...channels, '--json'));
    assert.deepEqual([again['outcome'], again['exitCode']], ['nothing-new', 0]);
  });

  it('exits 2 with RELEASE_UNKNOWN for a channel without a release', async () => {
    using dir = tempDir();
    await withReleases(dir);
    const run = await writ(dir, 'promote', '--from', 'canary', '--to', 'stable', '--json');
    assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'RELEASE_UNKNOWN']);
  });
});

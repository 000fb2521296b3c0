// The bounds on a change in the publisher's commands: the printed change, the refusal, and the flags that accept it.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { inodeState } from '../../../kit/assert/directory-state.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { jsonOf, runWrit, type WritRun } from '../../../kit/cli/run-writ.js';
import { type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';
import { type SampleFiles, sampleRepository } from '../../../kit/repository/sample-repository.js';

const places = ['--repository', 'repo', '--keys', 'keys', '--bundle', 'dns-edge'] as const;

function publish(dir: TempDir, files: SampleFiles, ...args: readonly string[]): Promise<WritRun> {
  fs.rmSync(dir.join('policy'), { recursive: true, force: true });
  writeTree(dir.join('policy'), files);
  return runWrit(['publish', 'policy', ...places, ...args], { cwd: dir.path });
}

function promote(dir: TempDir, ...args: readonly string[]): Promise<WritRun> {
  return runWrit(['promote', ...places, '--from', 'canary', '--to', 'stable', ...args], { cwd: dir.path });
}

async function withList(dir: TempDir, lines: number) {
  const repository = sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
  await repository.publish({ list: 'line\n'.repeat(lines), 'views/eu.yaml': 'eu: 1\n' });
  return repository;
}

const small = { list: 'line\n', 'views/eu.yaml': 'eu: 1\n' };

describe('writ publish', () => {
  it('prints the change from the head in files, bytes and lines', longCase, async () => {
    using dir = tempDir();
    await withList(dir, 100);
    const run = await publish(dir, { list: `${'line\n'.repeat(99)}other\n`, new: '1\n2\n' });
    assert.equal(run.exitCode, 0, run.stderr);
    assert.equal(
      run.stdout,
      'PUBLISHED dns-edge stable serial 1 -> 2\n' +
        '  compared with 1: 2 files (1 added, 1 removed, 1 changed), 506 B -> 505 B, lines +3 -2\n',
    );
    const json = jsonOf(await publish(dir, { list: 'line\n'.repeat(100), new: '1\n2\n' }, '--json'));
    assert.deepEqual(json['change'], {
      previousSerial: 2,
      files: { before: 2, after: 2, added: 0, removed: 0, changed: 1, emptied: 0 },
      bytes: { before: 505, after: 504 },
      lines: { added: 1, removed: 1, files: 1, notCounted: 0 },
      accepted: [],
    });
  });

  it('prints no comparison for a first release', async () => {
    using dir = tempDir();
    sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
    const json = jsonOf(await publish(dir, small, '--json'));
    assert.deepEqual([json['outcome'], json['change']], ['published', null]);
  });

  it('exits 3 with CHANGE_TOO_LARGE when more than half would be removed, also with --dry-run, and writes nothing', async () => {
    using dir = tempDir();
    const { directory } = await withList(dir, 100);
    const state = inodeState(directory);
    for (const args of [[], ['--dry-run']]) {
      const run = await publish(dir, small, ...args);
      assert.deepEqual([run.exitCode, run.stdout], [3, '']);
      assert.match(
        run.stderr,
        /error\[CHANGE_TOO_LARGE\]: dns-edge stable: too much of serial 1 would change \(expected at most 50% of 506 B removed, actual 495 B of 506 B removed \(97\.9%\)\)\nhint: .*--accept-change/,
      );
    }
    const json = jsonOf(await publish(dir, small, '--json'));
    assert.deepEqual([json['code'], json['exitCode']], ['CHANGE_TOO_LARGE', 3]);
    assert.deepEqual(inodeState(directory), state);
  });

  it('publishes with --accept-change, and prints the accepted change', longCase, async () => {
    using dir = tempDir();
    await withList(dir, 100);
    const dry = await publish(dir, small, '--accept-change', '--dry-run');
    assert.equal(dry.exitCode, 0, dry.stderr);
    const line =
      '  accepted with --accept-change: 495 B of 506 B removed (97.9%); bound: at most 50% of 506 B removed';
    assert.ok(dry.stdout.includes(`${line}\n`), dry.stdout);
    const run = await publish(dir, small, '--accept-change');
    assert.deepEqual(run.stdout.split('\n').slice(0, 3), [
      'PUBLISHED dns-edge stable serial 1 -> 2',
      '  compared with 1: 2 files (0 added, 0 removed, 1 changed), 506 B -> 11 B, lines +0 -99',
      line,
    ]);
    await publish(dir, { list: 'line\n'.repeat(100) });
    const json = jsonOf(await publish(dir, { list: '' }, '--accept-change', '--json'));
    const { accepted } = json['change'] as { accepted: { rule: string }[] };
    assert.deepEqual(
      accepted.map(({ rule }) => rule),
      ['bundle-empty'],
    );
  });

  it(
    'publishes with --fixes when the change is within the bounds of the release before the fault',
    longCase,
    async () => {
      using dir = tempDir();
      await withList(dir, 100);
      const good = (line: string) => ({
        list: `${'line\n'.repeat(99)}${line}\n`,
        'views/eu.yaml': 'eu: 1\n',
      });
      await publish(dir, { ...good('x'), list: 'line\n'.repeat(250) });
      assert.equal((await publish(dir, good('y'))).exitCode, 3);
      const run = await publish(dir, good('y'), '--fixes', '2');
      assert.equal(run.exitCode, 0, run.stderr);
      assert.match(run.stdout, /\n {2}within the bounds of 1, the release before the fault\n$/);
      await publish(dir, { ...good('x'), list: 'line\n'.repeat(250) });
      const json = jsonOf(await publish(dir, good('z'), '--fixes', '4', '--dry-run', '--json'));
      assert.equal((json['change'] as { withinBoundsOf?: number }).withinBoundsOf, 3);
    },
  );

  it('exits 3 for a directory without a file, and 2 for it as a first or accepted release', async () => {
    using dir = tempDir();
    sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
    const first = await publish(dir, {}, '--json');
    assert.deepEqual([first.exitCode, jsonOf(first)['code']], [2, 'SOURCE_REFUSED']);
    await publish(dir, small);
    for (const more of [[], ['--dry-run']]) {
      const run = await publish(dir, {}, '--json', ...more);
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [3, 'CHANGE_TOO_LARGE']);
      const accepted = await publish(dir, {}, '--accept-change', '--json', ...more);
      assert.deepEqual([accepted.exitCode, jsonOf(accepted)['code']], [2, 'SOURCE_REFUSED']);
    }
  });

  it('applies the bounds of its flags, and exits 2 for a bound that is not a percentage', async () => {
    using dir = tempDir();
    await withList(dir, 100);
    const wide = ['--max-removed', '98%', '--max-growth', '0%'];
    assert.equal((await publish(dir, small, ...wide)).exitCode, 0);
    const grown = await publish(dir, { ...small, list: 'line\n'.repeat(4) }, ...wide);
    assert.equal(grown.exitCode, 3);
    assert.match(grown.stderr, /actual 26 B \(136\.4% more\)/);
    for (const [flag, value] of [
      ['--max-removed', '50'],
      ['--max-removed', '101%'],
      ['--max-growth', '-1%'],
      ['--max-growth', '1.5%'],
    ] as const) {
      const run = await publish(dir, small, flag, value, '--json');
      assert.deepEqual([run.exitCode, jsonOf(run)['code']], [2, 'USAGE'], value);
    }
  });

  it('warns that no bound was applied when the archive of the head is missing', async () => {
    using dir = tempDir();
    const { directory } = await withList(dir, 100);
    const archives = `${directory}/targets/dns-edge`;
    for (const name of fs.readdirSync(archives)) fs.rmSync(`${archives}/${name}`);
    const run = await publish(dir, small);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stderr, /what changes since serial 1 is unknown, and no bound was applied/);
  });
});

describe('writ promote', () => {
  it('exits 3 when the target channel would lose more than half, and promotes with --accept-change', async () => {
    using dir = tempDir();
    const repository = await withList(dir, 100);
    await repository.publish(small, { channel: 'canary' });
    const state = inodeState(repository.directory);
    for (const args of [[], ['--dry-run']]) {
      const run = await promote(dir, ...args);
      assert.deepEqual([run.exitCode, run.stdout], [3, '']);
      assert.match(
        run.stderr,
        /error\[CHANGE_TOO_LARGE\]: dns-edge stable: too much of serial 1 would change/,
      );
    }
    assert.deepEqual(inodeState(repository.directory), state);
    const json = jsonOf(await promote(dir, '--accept-change', '--json'));
    const { accepted, bytes } = json['change'] as { accepted: { rule: string }[]; bytes: object };
    assert.equal(json['outcome'], 'promoted');
    assert.deepEqual(
      [accepted.map(({ rule }) => rule), bytes],
      [['bytes-removed'], { before: 506, after: 11 }],
    );
  });
});

describe('writ withdraw', () => {
  it('withdraws to a release of a hundredth of the size', async () => {
    using dir = tempDir();
    const repository = sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
    await repository.publish(small);
    await repository.publish({ ...small, list: 'line\n'.repeat(100) });
    const run = await runWrit(['withdraw', ...places, '--serial', '2'], { cwd: dir.path });
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^WITHDRAWN dns-edge 2\n {2}stable {2}2 -> 1 /);
  });
});

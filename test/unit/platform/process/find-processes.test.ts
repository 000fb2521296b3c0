// Users of a generation, on hand-made tables of all forms that the kernel has.
import assert from 'node:assert/strict';
import { mkdirSync, realpathSync } from 'node:fs';
import { describe, it } from 'node:test';
import {
  findGenerationUsers,
  type GenerationUserReport,
  type UserSearchLimits,
} from '../../../../src/platform/process/find-processes.js';
import { fakeClock } from '../../../kit/clock/fake-clock.js';
import { holderLine } from '../../../kit/disk/holder-line.js';
import { onDisk, type TempDir, tempDir } from '../../../kit/disk/temp-dir.js';
import { type FakeProcess, fakeProc } from './fake-proc.js';

interface Found extends GenerationUserReport {
  /** As `41 cwd 4711 /path`. */
  readonly lines: readonly string[];
}

/** On a machine with these processes; `POLICY` in a text is the path of policy/. */
async function find(
  dir: TempDir,
  processes: Readonly<Record<number, FakeProcess>>,
  options: { readonly mountinfo?: string; readonly limits?: Partial<UserSearchLimits> } = {},
): Promise<Found> {
  const policy = dir.join('policy');
  mkdirSync(policy);
  const filled = JSON.parse(
    JSON.stringify([processes, options.mountinfo ?? null]).replaceAll('POLICY', realpathSync(policy)),
  ) as [Record<number, FakeProcess>, string | null];
  const proc = fakeProc(dir.join('proc'), filled[0], filled[1] === null ? {} : { mountinfo: filled[1] });
  const search = { policy, proc, clock: fakeClock(), ...(options.limits ? { limits: options.limits } : {}) };
  const report = await findGenerationUsers(search);
  return {
    ...report,
    lines: report.holders.map(holderLine).map((line) => line.replaceAll(realpathSync(policy), 'POLICY')),
  };
}

const rootMount = '27 1 254:0 / / rw - ext4 /dev/vda rw\n';

describe('findGenerationUsers', () => {
  it('finds working directories, roots and open files, each process once for each', async () => {
    using dir = tempDir(onDisk());
    const { lines, holders, processes, isComplete } = await find(dir, {
      10: { cwd: 'POLICY/generations/3', open: ['/dev/null', 'socket:[7]', 'POLICY/generations/3'] },
      11: { root: 'POLICY/bundles/a/1-x.1/jail', comm: 'named' },
      12: { open: ['POLICY/bundles/a/1-x.1/f', 'POLICY/bundles/a/1-x.1/g', 'POLICY/bundles/b/2-y.2'] },
      13: { cwd: 'POLICY', root: 'POLICY/bundles/a', open: ['POLICY/current'] },
    });
    assert.deepEqual(lines, [
      '3 cwd 10 POLICY/generations/3',
      '3 open 10 POLICY/generations/3',
      '1-x.1 root 11 POLICY/bundles/a/1-x.1/jail',
      '1-x.1 open 12 POLICY/bundles/a/1-x.1/f',
      '2-y.2 open 12 POLICY/bundles/b/2-y.2',
    ]);
    assert.deepEqual([holders[2]?.command, processes, isComplete], ['named', 4, true]);
  });

  it('finds mounts of the host itself, which no process owns, and lists each once', async () => {
    using dir = tempDir(onDisk());
    const mount = '90 27 254:0 POLICY/generations/3 /srv/jail/p ro shared:7 - ext4 /dev/vda rw\n';
    const copied = { namespace: 'mnt:[2]', mountinfo: `${rootMount}${mount}` };
    const { lines } = await find(
      dir,
      { 10: {}, 11: copied, 12: copied },
      { mountinfo: `${rootMount}${mount}` },
    );
    assert.deepEqual(lines, ['3 mount - /srv/jail/p']);
  });

  it('finds mounts of other namespaces: of a generation, a tree, a directory and a file in one', async () => {
    using dir = tempDir(onDisk());
    const mounts = [
      '90 27 254:0 POLICY/generations/3 /p ro - ext4 /dev/vda rw',
      '91 27 254:0 POLICY/bundles/a/1-x.1 /t ro - ext4 /dev/vda rw',
      '92 27 254:0 POLICY/bundles/a/2-x.2/views /v ro - ext4 /dev/vda rw',
      '93 27 254:0 POLICY/bundles/a/4-x.4/f\\040g /f ro - ext4 /dev/vda rw',
      '94 27 254:0 POLICY /whole ro - ext4 /dev/vda rw',
      '95 27 254:7 POLICY/generations/5 /other ro - ext4 /dev/vdb rw',
    ];
    const { lines } = await find(dir, {
      10: { namespace: 'mnt:[2]', mountinfo: rootMount + mounts.join('\n') },
    });
    assert.deepEqual(lines, ['3 mount 10 /p', '1-x.1 mount 10 /t', '2-x.2 mount 10 /v', '4-x.4 mount 10 /f']);
  });

  it('reads paths of another namespace through its own mounts', async () => {
    using dir = tempDir(onDisk());
    const container = '90 1 0:60 / / rw - overlay o rw\n91 90 254:0 POLICY /policy ro - ext4 /dev/vda rw\n';
    const { lines } = await find(dir, {
      // An equal path in the container is a file of the container, and vice versa.
      10: { namespace: 'mnt:[2]', mountinfo: container, cwd: '/policy/generations/3' },
      11: { namespace: 'mnt:[2]', mountinfo: container, cwd: 'POLICY/generations/4' },
      12: { cwd: '/policy/generations/5' },
    });
    assert.deepEqual(lines, ['3 cwd 10 /policy/generations/3']);
  });

  it('knows a process in a jail by the mounts that others of its namespace show', async () => {
    using dir = tempDir(onDisk());
    const whole = '90 1 254:9 / / rw - ext4 r rw\n91 90 254:0 POLICY /srv/jail/p ro - ext4 /dev/vda rw\n';
    const { lines } = await find(dir, {
      10: { namespace: 'mnt:[2]', mountinfo: '91 90 254:0 POLICY /p ro - ext4 d rw\n', root: '/srv/jail' },
      11: { namespace: 'mnt:[2]', mountinfo: whole, open: ['/srv/jail/p/generations/3'] },
      12: {
        namespace: 'mnt:[2]',
        mountinfo: 'never read',
        root: '/srv/jail',
        cwd: '/srv/jail/p/generations/4',
      },
    });
    assert.deepEqual(lines, ['3 open 11 /srv/jail/p/generations/3', '4 cwd 12 /srv/jail/p/generations/4']);
  });

  it('translates through a state directory that is mounted itself, as a subvolume is', async () => {
    using dir = tempDir(onDisk());
    const mountinfo = `${rootMount}28 27 0:33 /@writ/p POLICY rw - btrfs /dev/vdb rw,subvol=/@writ\n`;
    const elsewhere = {
      namespace: 'mnt:[2]',
      mountinfo: '90 1 0:33 /@writ/p/generations/3 /x ro - btrfs b rw\n',
    };
    const { lines } = await find(dir, { 10: elsewhere, 11: { cwd: 'POLICY/generations/4' } }, { mountinfo });
    assert.deepEqual(lines, ['3 mount 10 /x', '4 cwd 11 POLICY/generations/4']);
  });

  it('finds what lies below an overlay', async () => {
    using dir = tempDir(onDisk());
    const mountinfo = `${rootMount}90 27 0:44 / /merged rw - overlay o rw,lowerdir=POLICY/bundles/a/1-x.1:/usr\n`;
    assert.deepEqual((await find(dir, {}, { mountinfo })).lines, ['1-x.1 mount - /merged']);
  });

  it('still knows what was removed under its holder', async () => {
    using dir = tempDir(onDisk());
    const { lines } = await find(dir, { 10: { cwd: 'POLICY/generations/3 (deleted)' } });
    assert.deepEqual(lines, ['3 cwd 10 POLICY/generations/3 (deleted)']);
  });

  it('goes on past processes that end meanwhile', async () => {
    using dir = tempDir(onDisk());
    const { lines, unseen, isComplete } = await find(dir, {
      10: { without: ['ns', 'root', 'cwd', 'fd', 'comm'] },
      11: { without: ['cwd', 'fd'] },
      12: { cwd: 'POLICY/generations/3', without: ['comm'] },
    });
    assert.deepEqual([lines.length, unseen, isComplete], [1, 0, true]);
  });
});

describe('the limits of findGenerationUsers', () => {
  const cwd = { cwd: 'POLICY/generations/3' };

  it('are reported when reached: entries, bytes, users', async () => {
    for (const limits of [{ maxEntries: 5 }, { maxHolders: 2 }]) {
      using dir = tempDir(onDisk());
      const found = await find(dir, { 10: cwd, 11: cwd, 12: cwd }, { limits });
      assert.equal(found.isComplete, false, JSON.stringify(limits));
    }
    using dir = tempDir(onDisk());
    const long = { namespace: 'mnt:[2]', mountinfo: rootMount.repeat(100) };
    const found = await find(dir, { 10: long, 11: cwd }, { limits: { maxBytes: 1000 } });
    assert.equal(found.isComplete, false);
  });

  it('count the bytes of all tables together', async () => {
    const table = (namespace: number): FakeProcess => ({
      namespace: `mnt:[${namespace}]`,
      mountinfo: rootMount.repeat(15),
    });
    const limits = { maxBytes: 1000 };
    using one = tempDir(onDisk());
    assert.equal((await find(one, { 10: table(2) }, { limits })).isComplete, true);
    using two = tempDir(onDisk());
    assert.equal((await find(two, { 10: table(2), 11: table(3) }, { limits })).isComplete, false);
  });

  it('are reported when reached: time', async () => {
    using dir = tempDir(onDisk());
    const policy = dir.join('policy');
    mkdirSync(policy);
    const proc = fakeProc(dir.join('proc'), { 10: {}, 11: {} });
    let nowMs = 0;
    const clock = { monotonicMs: () => (nowMs += 1000) };
    assert.equal(
      (await findGenerationUsers({ policy, proc, clock, limits: { maxMs: 1500 } })).isComplete,
      false,
    );
  });

  it('hold where there is no table of mounts at all', async () => {
    using dir = tempDir(onDisk());
    const { isComplete, holders } = await find(dir, { 10: cwd }, { mountinfo: '' });
    assert.deepEqual([isComplete, holders], [false, []]);
  });
});

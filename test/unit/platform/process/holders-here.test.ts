// Generation users on this machine: real processes, mounts and namespaces.
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, openSync, realpathSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { findGenerationUsers } from '../../../../src/platform/process/find-processes.js';
import { systemClock } from '../../../../src/platform/time/clock.js';
import { runNodeScript } from '../../../kit/cli/child-script.js';
import { holderLine } from '../../../kit/disk/holder-line.js';
import { onDisk, tempDir } from '../../../kit/disk/temp-dir.js';
import { needs } from '../../../kit/programs/real-programs.js';

/** Runs a program with the working directory `cwd`, and optionally an open file, during `act`. */
async function holding<T>(cwd: string, act: (child: ChildProcess) => Promise<T>, file?: string): Promise<T> {
  const stdin = file === undefined ? 'pipe' : openSync(file, 'r');
  const child = spawn('sleep', ['60'], { cwd, stdio: [stdin, 'ignore', 'ignore'] });
  const closed = new Promise((resolve) => child.once('close', resolve));
  try {
    await new Promise((resolve) => child.once('spawn', resolve));
    return await act(child);
  } finally {
    child.kill('SIGKILL');
    await closed;
  }
}

function needsRoot(): { skip?: string } {
  return process.getuid?.() === 0 ? needs('unshare', 'util-linux') : { skip: 'only root makes namespaces' };
}

describe('findGenerationUsers on this machine', () => {
  it('finds a working directory and an open file of a real process, and not our own', async () => {
    using dir = tempDir(onDisk());
    const policy = dir.join('policy');
    mkdirSync(dir.join('policy', 'generations', '3', 'sub'), { recursive: true });
    mkdirSync(dir.join('policy', 'bundles', 'a', '1-x.1'), { recursive: true });
    const file = dir.join('policy', 'bundles', 'a', '1-x.1', 'f');
    writeFileSync(file, '');
    const ours = openSync(file, 'r');
    assert.ok(ours > 0);
    const report = await holding(
      dir.join('policy', 'generations', '3', 'sub'),
      async (child) => {
        const { holders } = await findGenerationUsers({ policy, clock: systemClock });
        return holders.map((one) => `${holderLine(one)} ${one.command} ${one.pid === child.pid}`);
      },
      file,
    );
    const real = realpathSync(policy);
    assert.deepEqual(
      report.map((line) => line.replace(real, '').replace(/ \d+ /, ' ')),
      ['3 cwd /generations/3/sub sleep true', '1-x.1 open /bundles/a/1-x.1/f sleep true'],
    );
    assert.deepEqual((await findGenerationUsers({ policy, clock: systemClock })).holders, []);
  });

  it(
    'finds who is in another mount or PID namespace, and a directory that is only open',
    needsRoot(),
    async () => {
      using dir = tempDir(onDisk());
      const policy = dir.join('policy');
      mkdirSync(dir.join('policy', 'generations', '3'), { recursive: true });
      mkdirSync(dir.join('policy', 'bundles', 'a', '1-x.1', 'sub'), { recursive: true });
      for (const name of ['p', 't']) mkdirSync(dir.join(name));
      const scripts = [
        `mount --bind ${policy} ${dir.join('p')} && cd ${dir.join('p')}/generations/3`,
        `mount --bind ${policy}/bundles/a/1-x.1/sub ${dir.join('t')}`,
        `cd /; exec 5<${policy}/bundles/a/1-x.1`,
      ];
      const children = scripts.map((script) => {
        const argv = [
          '--mount',
          '--pid',
          '--fork',
          '--kill-child',
          'sh',
          '-c',
          `${script} && echo ready && exec sleep 60`,
        ];
        return spawn('unshare', argv, { stdio: ['ignore', 'pipe', 'inherit'] });
      });
      try {
        await Promise.all(
          children.map((child) => new Promise((resolve) => child.stdout.once('data', resolve))),
        );
        const { holders } = await findGenerationUsers({ policy, clock: systemClock });
        const real = realpathSync(dir.path);
        const lines = holders.map((one) => holderLine(one).replace(real, '').replace(/ \d+ /, ' ')).sort();
        assert.deepEqual(lines, [
          '1-x.1 mount /t',
          '1-x.1 open /policy/bundles/a/1-x.1',
          '3 cwd /p/generations/3',
        ]);
      } finally {
        const ends = children.map((child) => new Promise((resolve) => child.once('close', resolve)));
        for (const child of children) child.kill('SIGKILL');
        await Promise.all(ends);
      }
    },
  );

  const asRoot = { skip: process.getuid?.() === 0 ? false : 'only root can become another user' };
  it('skips processes that its user may not read, and counts them', asRoot, async () => {
    using dir = tempDir(onDisk());
    mkdirSync(dir.join('policy'));
    const result = await runNodeScript(`
      const { findGenerationUsers } = await import(at('src/platform/process/find-processes.js'));
      const { systemClock } = await import(at('src/platform/time/clock.js'));
      await import(at('src/core/status/mount-table.js'));
      process.setgid(65534); process.setuid(65534);
      const report = await findGenerationUsers({ policy: '/', clock: systemClock });
      console.log(JSON.stringify([report.isComplete, report.unseen > 0, report.holders]));`);
    assert.equal(result.kind === 'exited' && result.stdout, '[true,true,[]]\n', JSON.stringify(result));
  });
});

import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { isSystemError } from '../../../../src/core/errors.js';
import {
  childrenOf,
  findProcess,
  isDraining,
  readPidFile,
  sendSignal,
  whyNoPid,
} from '../../../../src/platform/process/processes.js';
import { until } from '../../../kit/assert/until.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

/** The program that a process runs. */
function nameOf(pid: number): string {
  return readFileSync(`/proc/${pid}/comm`, 'utf8').trim();
}

describe('finding a process', () => {
  it('knows itself, with a start time that stays', () => {
    const self = findProcess(process.pid);
    assert.equal(self?.pid, process.pid);
    assert.equal(self?.effectiveUid, process.getuid?.());
    assert.ok((self?.startTicks ?? 0) > 0);
    assert.deepEqual(findProcess(process.pid), self);
  });

  it('parses the fields of a program with spaces and parentheses in its name', async () => {
    using dir = tempDir();
    const program = dir.join('a) R 1 (b');
    execFileSync('cp', ['/bin/sleep', program]);
    const child = spawn(program, ['60']);
    await new Promise((resolve) => child.once('spawn', resolve));
    const self = findProcess(process.pid);
    assert.ok((findProcess(child.pid ?? 0)?.startTicks ?? 0) >= (self?.startTicks ?? Number.NaN));
    child.kill('SIGKILL');
  });

  it('does not take a zombie for alive', async () => {
    // The shell starts a child, prints its pid and becomes a program that never reaps it.
    const parent = spawn('sh', ['-c', 'sleep 1000 & echo $!; exec sleep 1000']);
    try {
      const pid = Number(await new Promise((resolve) => parent.stdout.once('data', resolve)));
      await until(() => nameOf(parent.pid ?? 0) === 'sleep');
      process.kill(pid, 'SIGKILL');
      await until(() =>
        execFileSync('ps', ['-o', 'stat=', '-p', String(pid)])
          .toString()
          .startsWith('Z'),
      );
      assert.equal(sendSignal(pid, 'SIGWINCH'), undefined, 'the system itself calls it alive');
      assert.equal(findProcess(pid), undefined);
    } finally {
      parent.kill('SIGKILL');
    }
  });

  it('finds none where none is', () => {
    assert.equal(findProcess(4_194_305), undefined);
    assert.equal(sendSignal(4_194_305, 'SIGWINCH'), 'ESRCH');
  });
});

describe('the children of a process', () => {
  it('are the living ones, without zombies', async () => {
    const parent = spawn('sh', ['-c', 'sleep 0 & sleep 1000 & sleep 1000 & exec sleep 1000'], {
      stdio: 'ignore',
    });
    const pid = parent.pid ?? 0;
    try {
      // Before the shell has become a program, two may be the one that ends at once and one of the others.
      await until(() => nameOf(pid) === 'sleep' && childrenOf(pid).length === 2);
      const children = childrenOf(pid);
      assert.deepEqual(
        children.map((one) => findProcess(one.pid)),
        children,
      );
      for (const child of children) process.kill(child.pid, 'SIGKILL');
      // The zombies that remain use no policy.
      await until(() => childrenOf(pid).length === 0);
    } finally {
      parent.kill('SIGKILL');
    }
    await until(() => findProcess(pid) === undefined);
    assert.deepEqual(childrenOf(pid), []);
  });

  it('show in their title that they accept no new connection', async () => {
    const title = 'nginx: worker process is shutting down';
    const draining = spawn('bash', ['--norc', '-c', `exec -a "${title}" sleep 1000`], { stdio: 'ignore' });
    try {
      await until(() => isDraining(draining.pid ?? 0));
      assert.equal(isDraining(process.pid), false);
    } finally {
      draining.kill('SIGKILL');
    }
    await until(() => findProcess(draining.pid ?? 0) === undefined);
    assert.equal(isDraining(draining.pid ?? 0), false);
  });
});

describe('reading a pid file', () => {
  it('takes one number with white space around it', () => {
    using dir = tempDir();
    for (const text of ['4711', '4711\n', '  4711\r\n']) {
      writeFileSync(dir.join('pid'), text);
      const { pid, uid } = readPidFile(dir.join('pid')) ?? {};
      assert.deepEqual({ pid, uid }, { pid: 4711, uid: process.getuid?.() });
    }
  });

  it('rejects every other text, in particular pids that address all processes', () => {
    using dir = tempDir();
    const bad = ['', '0', '1', '-1', '-4711', '+4711', '0x12', '12 13', '4711a', '047', '1e3', '99999999999'];
    for (const text of [...bad, `4711${' '.repeat(100)}`]) {
      writeFileSync(dir.join('pid'), text);
      assert.equal(readPidFile(dir.join('pid')), undefined, JSON.stringify(text));
    }
  });

  it('does not hang on a FIFO and reads no directory', () => {
    using dir = tempDir();
    execFileSync('mkfifo', [dir.join('fifo')]);
    mkdirSync(dir.join('folder'));
    assert.equal(readPidFile(dir.join('fifo')), undefined);
    assert.equal(readPidFile(dir.join('folder')), undefined);
  });

  it('follows no link, which could lead to the pid file of another program', () => {
    using dir = tempDir();
    writeFileSync(dir.join('other'), '4711\n');
    symlinkSync('other', dir.join('pid'));
    assert.equal(readPidFile(dir.join('pid')), undefined);
    assert.match(whyNoPid(dir.join('pid')), /pid is a link, which is not followed/);
  });

  it('gives the reason why a file has no pid', () => {
    using dir = tempDir();
    writeFileSync(dir.join('text'), 'none\n');
    mkdirSync(dir.join('folder'));
    assert.match(whyNoPid(dir.join('text')), /text does not contain a pid$/);
    assert.match(whyNoPid(dir.join('folder')), /folder is not a file$/);
  });

  it('lets the caller know that there is none', () => {
    using dir = tempDir();
    assert.throws(
      () => readPidFile(dir.join('pid')),
      (error) => isSystemError(error, 'ENOENT'),
    );
  });
});

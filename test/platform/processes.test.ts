import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { isSystemError } from '../../src/core/errors.js';
import { findProcess, readPidFile, sendSignal } from '../../src/platform/processes.js';
import { tempDir } from '../support/temp-dir.js';
import { until } from '../support/until.js';

describe('finding a process', () => {
  it('knows itself, with a start time that stays', () => {
    const self = findProcess(process.pid);
    assert.equal(self?.pid, process.pid);
    assert.equal(self?.effectiveUid, process.getuid?.());
    assert.ok((self?.startTicks ?? 0) > 0);
    assert.deepEqual(findProcess(process.pid), self);
  });

  it('counts the fields of a program whose name has spaces and parentheses', async () => {
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
    const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60']);
    const pid = Number(await new Promise((resolve) => parent.stdout.once('data', resolve)));
    await until(() =>
      execFileSync('ps', ['-o', 'stat=', '-p', String(pid)])
        .toString()
        .startsWith('Z'),
    );
    assert.equal(sendSignal(pid, 'SIGWINCH'), undefined, 'the system itself calls it alive');
    assert.equal(findProcess(pid), undefined);
    parent.kill('SIGKILL');
  });

  it('finds none where none is', () => {
    assert.equal(findProcess(4_194_305), undefined);
    assert.equal(sendSignal(4_194_305, 'SIGWINCH'), 'ESRCH');
  });
});

describe('reading a pid file', () => {
  it('takes one number with white space around it', () => {
    using dir = tempDir();
    for (const text of ['4711', '4711\n', '  4711\r\n']) {
      writeFileSync(dir.join('pid'), text);
      assert.deepEqual(readPidFile(dir.join('pid')), { pid: 4711, uid: process.getuid?.() });
    }
  });

  it('takes nothing else, least of all pids that mean everybody', () => {
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

  it('lets the caller know that there is none', () => {
    using dir = tempDir();
    assert.throws(
      () => readPidFile(dir.join('pid')),
      (error) => isSystemError(error, 'ENOENT'),
    );
  });
});

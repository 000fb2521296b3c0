// Ctrl-C during the wait for a device: the program of the device must not continue and sign after the command ended.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { systemClock } from '../../../src/platform/time/clock.js';
import { until } from '../../kit/assert/until.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { sampleRepository, someKeys } from '../../kit/repository/sample-repository.js';

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A killed orphan stays a zombie when no init process reaps it.
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('a signal while an external signer runs', () => {
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ] as const) {
    it(`ends the signer and removes its temporary files (${signal})`, async () => {
      using dir = tempDir();
      const repository = sampleRepository(dir, { clock: systemClock, rootKeys: 1, rootThreshold: 1 });
      const temporary = dir.join('tmp');
      fs.mkdirSync(temporary);
      const pidFile = dir.join('pid');
      const keys = someKeys(dir, repository, 'root.json');
      const signer = `targets=echo $$ > ${pidFile}.new; mv ${pidFile}.new ${pidFile}; sleep 100`;
      const args = ['sign', '--role', 'targets', '--repository', repository.directory, '--keys', keys];
      const child = spawn(process.execPath, [writProgram, ...args, '--signer', signer], {
        env: { PATH: process.env['PATH'], TMPDIR: temporary },
        stdio: 'ignore',
      });
      const ended = new Promise<number | null>((resolve) => child.on('close', resolve));
      await until(() => fs.existsSync(pidFile));
      assert.equal(fs.readdirSync(temporary).length, 1);
      child.kill(signal);
      assert.equal(await ended, exitCode);
      const pid = Number(fs.readFileSync(pidFile, 'utf8'));
      await until(() => !isRunning(pid));
      assert.deepEqual(fs.readdirSync(temporary), []);
    });
  }
});

import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { readCommand } from '../../../../src/platform/process/proc-files.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

describe('the name of a process', () => {
  it('is that of its program, not of the thread that newer versions of Node name it by', () => {
    using proc = tempDir();
    const named = (pid: number, comm: string): string | undefined => {
      mkdirSync(proc.join(String(pid)));
      writeFileSync(proc.join(String(pid), 'comm'), comm);
      return readCommand(proc.path, pid);
    };
    assert.equal(named(7, 'node-MainThread\n'), 'node');
    assert.equal(named(8, 'kresd\n'), 'kresd');
    assert.equal(readCommand(proc.path, 9), undefined);
  });

  it('is known of this process, whatever the version of Node', () => {
    assert.equal(readCommand('/proc', process.pid), 'node');
  });
});

// The description of a late test process: its child processes, and the handles that its event loop waits for.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { projectRoot } from '../../kit/sources/source-files.js';

interface LateProcess {
  reportFlags(directory: string): readonly string[];
  describeLateProcess(
    pid: number,
    report: { readonly directory: string; readonly waitMs: number },
  ): Promise<readonly string[]>;
}

const { reportFlags, describeLateProcess } = (await import(
  pathToFileURL(join(projectRoot, 'scripts/late-process.js')).href
)) as LateProcess;

/** Runs a program in a group of its own until its first output, and describes the group. */
async function describeProgram(text: string, waitMs: number): Promise<string> {
  using dir = tempDir();
  const argv = [...reportFlags(dir.path), '--eval', text];
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  const { pid } = child;
  assert.ok(pid !== undefined);
  try {
    await once(child.stdout, 'data');
    return (await describeLateProcess(pid, { directory: dir.path, waitMs })).join('\n');
  } finally {
    process.kill(-pid, 'SIGKILL');
    await once(child, 'close');
  }
}

describe('the description of a late process', longCase, () => {
  it('names the program that the process waits for', async () => {
    const start = `const child = require('node:child_process').spawn('sleep', ['1234']);
      child.on('spawn', () => console.log('started'));`;
    const text = await describeProgram(start, 60_000);
    const [, pid] = /process (\d+), started by \d+: sleep 1234/.exec(text) ?? [];
    assert.ok(pid !== undefined, text);
    assert.match(text, new RegExp(`^handle process pid ${pid}$`, 'm'));
  });

  it('names the connection that the process waits for', async () => {
    const start = `const net = require('node:net');
      const server = net.createServer().listen(0, '127.0.0.1', () => {
        const { port } = server.address();
        const client = net.connect(port, '127.0.0.1', () => console.log('connected'));
      });`;
    assert.match(
      await describeProgram(start, 60_000),
      /^handle tcp .*local 127\.0\.0\.1:\d+ remote 127\.0\.0\.1:\d+$/m,
    );
  });

  it('names a main thread that is blocked', async () => {
    const start = `require('node:fs').writeSync(1, 'blocked');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);`;
    const text = await describeProgram(start, 500);
    assert.match(text, /^process \d+, started by \d+: .*--eval/m);
    assert.match(text, /the main thread is blocked: no report of the handles$/);
  });
});

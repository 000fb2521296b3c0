// Each command once as a person runs it: the compiled program in a process of its own, in a directory, with paths as they
// are typed. What the commands do is for the other tests, which call them in their own process.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { commands as table } from '../../../src/cli/run.js';
import { prepareWalk, walkedCommands } from '../../kit/cli/command-walk.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

/** Both go on until a signal, and have tests of their own. */
const longRunning = ['agent', 'serve', 'fleet serve'];

describe('the program', () => {
  it('runs each command', async () => {
    using dir = tempDir();
    prepareWalk(dir);
    const ended: string[] = [];
    for (const [name, rest] of walkedCommands) {
      const args = [...name.split(' '), ...rest.split(' '), '--json'];
      const end = await runWritProcess(args, { cwd: dir.path });
      const { outcome, exitCode } = jsonOf(end);
      assert.equal(exitCode, end.exitCode, name);
      ended.push(`${name}: ${outcome}`);
    }
    assert.deepEqual(
      ended,
      walkedCommands.map(([name, , outcome]) => `${name}: ${outcome}`),
    );
  });

  it('has no command beside them', () => {
    const run = [...walkedCommands.map(([name]) => name), ...longRunning];
    assert.deepEqual(table.map(({ name }) => name).sort(), [...run].sort());
  });
});

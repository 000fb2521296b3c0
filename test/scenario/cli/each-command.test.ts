// Runs each command once: the compiled program in a process of its own, in a directory, with paths as a user types them.
// Other tests check what the commands do; they call them in the process of the test.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { commands as table } from '../../../src/cli/run.js';
import { longCase } from '../../kit/assert/long-case.js';
import { prepareWalk, walkedCommands } from '../../kit/cli/command-walk.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

/** These run until a signal, and have tests of their own. */
const longRunning = ['agent', 'serve', 'fleet serve'];

describe('the program', longCase, () => {
  it('runs each command and exits with the expected outcome', async () => {
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

  it('has no other command', () => {
    const run = [...walkedCommands.map(([name]) => name), ...longRunning];
    assert.deepEqual(table.map(({ name }) => name).sort(), [...run].sort());
  });
});

// The progress line of the publisher's commands: on a terminal from the first step on, and never in output for a program.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { longCase } from '../../../kit/assert/long-case.js';
import { madeHere } from '../../../kit/cli/publisher-cli.js';
import { runWrit } from '../../../kit/cli/run-writ.js';
import { listOf } from '../../../kit/delta/list-tree.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { writeTree } from '../../../kit/disk/write-tree.js';

const redraw = '\r\u001b[2K';
const commands = [
  {
    args: ['publish', 'source', '--repository', 'repo', '--keys', 'keys', '--bundle', 'dns-edge'],
    steps: ['read', 'pack'],
  },
  { args: ['repo', 'check', '--repository', 'repo'], steps: ['archives'] },
  { args: ['repo', 'export', 'stick', '--repository', 'repo'], steps: ['export'] },
] as const;

describe('a long publisher command', () => {
  it('prints the progress of each step on a terminal', longCase, async () => {
    using dir = tempDir();
    madeHere(dir);
    writeTree(dir.join('source'), { 'block.rpz': listOf(2000) });
    for (const { args, steps } of commands) {
      const run = await runWrit([...args, '--color', 'never'], { cwd: dir.path, terminalColumns: 100 });
      assert.equal(run.exitCode, 0, run.stderr);
      const lines = run.stderr.split(redraw);
      for (const step of steps) {
        const progress = lines.filter(
          (line) => line.startsWith(`  ${step.padEnd(9)} `) && / \d+ %/.test(line),
        );
        assert.ok(progress.length > 0, `${step}: ${JSON.stringify(lines)}`);
      }
      assert.ok(!run.stdout.includes('\r') && !run.stdout.includes('%'));
    }
  });

  it('prints no progress line into a log, or on a terminal with --json or --quiet', async () => {
    for (const flags of [[], ['--verbose'], ['--json'], ['--quiet']]) {
      using dir = tempDir();
      madeHere(dir);
      writeTree(dir.join('source'), { 'block.rpz': listOf(2000) });
      for (const { args } of commands) {
        const silent = flags.includes('--json') || flags.includes('--quiet');
        const terminal = silent ? { terminalColumns: 100 } : {};
        const run = await runWrit([...args, ...flags], { cwd: dir.path, ...terminal });
        assert.equal(run.exitCode, 0, run.stderr);
        if (silent) assert.equal(run.stderr, '');
        assert.ok(!run.stderr.includes('\r') && !run.stderr.includes('%'), run.stderr);
        if (flags.includes('--json')) assert.equal(typeof JSON.parse(run.stdout), 'object');
      }
    }
  });
});

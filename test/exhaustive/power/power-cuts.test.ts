// A power cut on a real ext4 in a loop image, at a handful of moments around the swap and the acknowledgement; all
// moments and XFS and btrfs by `npm run crash:disk`. Runs in a mount namespace of its own, so that nothing stays mounted.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../../src/platform/process/run-command.js';

/** Loop devices are a matter of the machine: no package brings them, so a gate without them says so and goes on. */
function needsLoopDevices(): { skip?: string } {
  if (process.getuid?.() !== 0) return { skip: 'not root: no image can be mounted' };
  const free = spawnSync('unshare', ['-m', 'losetup', '-f'], { encoding: 'utf8' });
  return free.status === 0 ? {} : { skip: `no loop devices: ${free.error?.message ?? free.stderr.trim()}` };
}

describe('a power cut on ext4', needsLoopDevices(), () => {
  it('leaves one whole policy, the new one once it was acknowledged', async (context) => {
    const report = join(import.meta.dirname, 'disk-report.js');
    const folder = process.env['NODE_V8_COVERAGE'];
    const run = await runCommand({
      argv: ['unshare', '-m', process.execPath, report, 'short'],
      env: folder === undefined ? {} : { NODE_V8_COVERAGE: folder },
      timeoutMs: 300_000,
      maxOutputBytes: 1_000_000,
    });
    assert.ok(run.kind === 'exited', `the report was ${run.kind}`);
    assert.equal(run.exitCode, 0, `${run.stdout}${run.stderr}`);
    // A container may have the device files and no right to mount: said, and no reason to fail.
    const skipped = /^skipped: no file system.*$/m.exec(run.stdout)?.[0];
    if (skipped !== undefined) return context.skip(skipped);
    const [, judged] = /ext4 in all: \d+ cuts, (\d+) judged, 0 violations/.exec(run.stdout) ?? [];
    assert.ok(Number(judged) >= 12, run.stdout);
    // The same cuts find a host that does not flush.
    assert.match(run.stdout, /without flushes: the acknowledged update is lost/);
    assert.match(run.stdout, /the new policy is not whole/);
    return context.diagnostic(run.stdout.trim().split('\n').at(-1) ?? '');
  });
});

// A power cut on a real ext4 in a loop image, at a few moments around the swap and the acknowledgement. `npm run crash:disk`
// tries all moments, XFS and btrfs. Runs in a private mount namespace, so that nothing stays mounted.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../../src/platform/process/run-command.js';

/** Loop devices depend on the machine and no package provides them: a gate without them skips with a message. */
function needsLoopDevices(): { skip?: string } {
  if (process.getuid?.() !== 0) return { skip: 'not root: no image can be mounted' };
  const free = spawnSync('unshare', ['-m', 'losetup', '-f'], { encoding: 'utf8' });
  return free.status === 0 ? {} : { skip: `no loop devices: ${free.error?.message ?? free.stderr.trim()}` };
}

describe('a power cut on ext4', needsLoopDevices(), () => {
  it('leaves one intact policy, and the new one after its acknowledgement', async (context) => {
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
    // A container may have the device files without permission to mount: skip with a message.
    const skipped = /^skipped: no file system.*$/m.exec(run.stdout)?.[0];
    if (skipped !== undefined) return context.skip(skipped);
    const [, judged] = /ext4 in all: \d+ cuts, (\d+) judged, 0 violations/.exec(run.stdout) ?? [];
    assert.ok(Number(judged) >= 12, run.stdout);
    // The same cuts must detect a host that does not flush.
    assert.match(run.stdout, /without flushes: the acknowledged update is lost/);
    assert.match(run.stdout, /the new policy is not whole/);
    return context.diagnostic(run.stdout.trim().split('\n').at(-1) ?? '');
  });
});

// Runs a script in its own mount namespace: file systems mounted there end with it, and other processes do not see them. Needs
// root, or a kernel that lets a user make a namespace; otherwise the test is skipped.
import { spawnSync } from 'node:child_process';
import { type CommandResult, runCommand } from '../../../src/platform/process/run-command.js';
import { scriptArgv } from '../cli/child-script.js';
import { needs } from '../programs/real-programs.js';

const unshare = ['unshare', ...(process.getuid?.() === 0 ? [] : ['-r']), '-m'];

/** @returns options for node:test: empty if a namespace with a mount can be made */
export function needsMounts(): { skip?: string } {
  const missing = needs('unshare', 'util-linux');
  if (missing.skip !== undefined || process.env['WRIT_TEST_REQUIRE_REAL'] === '1') return missing;
  const [program = '', ...args] = unshare;
  const tried = spawnSync(program, [...args, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']);
  return tried.status === 0 ? {} : { skip: 'mounts need root or user namespaces' };
}

/**
 * @param mounts lines of shell, run before the script, as `mount -t tmpfs -o size=8m tmpfs /tmp/x`
 * @param script as that of runNodeScript
 */
export function runMounted(mounts: readonly string[], script: string): Promise<CommandResult> {
  const folder = process.env['NODE_V8_COVERAGE'];
  return runCommand({
    argv: [
      'unshare',
      ...unshare.slice(1),
      'sh',
      '-ec',
      `${mounts.join('\n')}\nexec "$@"`,
      'sh',
      ...scriptArgv(script),
    ],
    env: folder === undefined ? {} : { NODE_V8_COVERAGE: folder },
    timeoutMs: 60_000,
    maxOutputBytes: 200_000,
  });
}

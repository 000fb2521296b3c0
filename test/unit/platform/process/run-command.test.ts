// The ends of commands, on real processes: every end is a result, no process remains, and nothing is inherited.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, it, mock, type TestContext } from 'node:test';
import {
  type CommandOptions,
  type CommandResult,
  defaultPath,
  runCommand,
} from '../../../../src/platform/process/run-command.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { heldTimer } from '../../../kit/clock/held-timer.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';
import { isAlive, isGone } from '../../../kit/programs/processes.js';

function sh(script: string, options: Partial<CommandOptions> = {}): Promise<CommandResult> {
  return runCommand({
    argv: ['sh', '-c', script],
    timeoutMs: 60_000,
    maxOutputBytes: 10_000,
    ...options,
  });
}

type Ran = Exclude<CommandResult, { kind: 'not-started' }>;

/** The result of a command that was started; fails the test for one that was not. */
function ran(result: CommandResult): Ran {
  assert.notEqual(result.kind, 'not-started');
  return result as Ran;
}

/** Runs a script with a timeout that expires as soon as the script has written to stderr. */
async function lateAfterStderr(t: TestContext, script: string): Promise<Ran> {
  const timeoutMs = 61_004;
  const deadline = heldTimer(t, timeoutMs);
  return ran(await sh(script, { timeoutMs, onStderr: () => void deadline.fire() }));
}

describe('the environment of a command', () => {
  it('is no descriptor that a script above us has left open', () => {
    using dir = tempDir();
    const module = new URL('../../../../src/platform/process/run-command.js', import.meta.url).href;
    const ours = `const { runCommand } = await import('${module}');
      const argv = ['sh', '-c', 'readlink /proc/self/fd/*'];
      process.stdout.write((await runCommand({ argv, timeoutMs: 60_000, maxOutputBytes: 9999 })).stdout);`;
    // As scripts hold a lock while they run something: flock(1).
    const script = '{ "$1" --input-type=module -e "$2"; } 30>"$3" 200>"$3"';
    const argv = ['--norc', '-c', script, 'bash', process.execPath, ours, dir.join('lock')];
    const seen = execFileSync('bash', argv, { encoding: 'utf8' });
    assert.match(seen, /^socket:/m);
    assert.ok(!seen.includes(dir.path), seen);
  });

  it('has no variable but PATH and those asked for', async () => {
    const folder = process.env['NODE_V8_COVERAGE'];
    process.env['WRIT_TEST_SECRET'] = 'leak';
    // Node hands this one on by itself.
    process.env['NODE_V8_COVERAGE'] = folder ?? '/nowhere';
    const result = await runCommand({
      argv: ['env'],
      env: { WRIT_BUNDLE_DIR: '/b' },
      timeoutMs: 60_000,
      maxOutputBytes: 10_000,
    });
    delete process.env['WRIT_TEST_SECRET'];
    if (folder === undefined) delete process.env['NODE_V8_COVERAGE'];
    assert.deepEqual(ran(result).stdout.trim().split('\n').sort(), [
      `PATH=${defaultPath}`,
      'WRIT_BUNDLE_DIR=/b',
    ]);
  });

  it('passes arguments as they are, through no shell', async () => {
    const result = await runCommand({
      argv: ['printf', '%s|', '$HOME', 'a b', '*', ''],
      timeoutMs: 60_000,
      maxOutputBytes: 1000,
    });
    assert.equal(ran(result).stdout, '$HOME|a b|*||');
  });

  it('runs in the directory asked for', async () => {
    using dir = tempDir();
    assert.equal(ran(await sh('pwd -P', { cwd: dir.path })).stdout, `${dir.path}\n`);
  });

  it('reads the input, and an end when there is none', async () => {
    assert.equal(ran(await sh('cat', { input: Buffer.from('zone') })).stdout, 'zone');
    assert.equal(ran(await sh('cat; echo end')).stdout, 'end\n');
  });

  it('gets an extra descriptor as its 3, and the next as its 4', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('three'), 'third');
    writeFileSync(dir.join('four'), 'fourth');
    const three = openSync(dir.join('three'), 'r');
    const four = openSync(dir.join('four'), 'r');
    const result = ran(await sh('cat <&3; echo; cat <&4', { extraDescriptors: [three, four] }));
    closeSync(three);
    closeSync(four);
    assert.equal(result.stdout, 'third\nfourth');
  });

  it('has no file that this process holds open', async () => {
    using dir = tempDir();
    const ours = openSync(dir.join('secret.key'), 'w');
    const result = ran(await sh('ls -l /proc/self/fd/'));
    closeSync(ours);
    assert.match(result.stdout, /pipe|socket/);
    assert.doesNotMatch(result.stdout, /secret\.key/);
  });
});

describe('how a command ends', () => {
  it('returns the exit code, and both streams separately', async () => {
    const result = ran(await sh('echo out; echo err >&2; exit 7'));
    assert.equal(result.kind, 'exited');
    assert.equal(result.kind === 'exited' && result.exitCode, 7);
    assert.equal(result.stdout, 'out\n');
    assert.equal(result.stderr, 'err\n');
    assert.equal(result.truncated, false);
    assert.ok(result.durationMs > 0);
  });

  it('returns the signal that killed it', async () => {
    const result = await sh('kill -SEGV $$');
    assert.equal(result.kind === 'killed' && result.signal, 'SIGSEGV');
  });

  it('reports a missing program', async () => {
    const result = await runCommand({
      argv: ['writ-no-such-program'],
      timeoutMs: 60_000,
      maxOutputBytes: 100,
    });
    assert.equal(result.kind, 'not-started');
    assert.match(result.kind === 'not-started' ? result.reason : '', /ENOENT/);
  });

  it('reports a program that may not be executed', async () => {
    using dir = tempDir();
    writeFileSync(dir.join('check'), '#!/bin/sh\nexit 0\n');
    chmodSync(dir.join('check'), 0o644);
    const result = await runCommand({ argv: [dir.join('check')], timeoutMs: 60_000, maxOutputBytes: 100 });
    assert.match(result.kind === 'not-started' ? result.reason : '', /EACCES/);
  });

  it('reports a missing working directory', async () => {
    assert.equal((await sh('true', { cwd: '/no/such/place' })).kind, 'not-started');
  });

  it('does not reject for an argument that no program can get', async () => {
    const result = await runCommand({ argv: ['echo', 'a\0b'], timeoutMs: 60_000, maxOutputBytes: 100 });
    assert.equal(result.kind, 'not-started');
  });

  it('does not reject for more arguments than the kernel takes', async () => {
    const huge = 'x'.repeat(3_000_000);
    const result = await runCommand({ argv: ['echo', huge], timeoutMs: 60_000, maxOutputBytes: 100 });
    assert.equal(result.kind, 'not-started');
  });

  it('is not disturbed by a command that does not read its input', async () => {
    const result = await sh('exec <&-; echo done', { input: Buffer.alloc(1_000_000) });
    assert.equal(result.kind === 'exited' && result.exitCode, 0);
  });
});

describe('the bound on output', () => {
  it('keeps the first bytes of each stream and reports that more was dropped', async () => {
    const result = ran(await sh('printf 1234567890; printf abc >&2', { maxOutputBytes: 4 }));
    assert.equal(result.stdout, '1234');
    assert.equal(result.stderr, 'abc');
    assert.equal(result.truncated, true);
  });

  it('does not call output cut off that just fits', async () => {
    const result = ran(await sh('printf 1234', { maxOutputBytes: 4 }));
    assert.equal(result.stdout, '1234');
    assert.equal(result.truncated, false);
  });

  it('goes on reading, so that a talkative command ends by itself', async () => {
    const result = ran(await sh('head -c 3000000 /dev/zero; exit 3', { maxOutputBytes: 10 }));
    assert.equal(result.kind === 'exited' && result.exitCode, 3);
    assert.equal(result.stdout.length, 10);
  });
});

describe('the process group', () => {
  it('is killed whole at the deadline', async (t) => {
    const result = await lateAfterStderr(t, 'sleep 600 & echo $! >&2; wait');
    assert.equal(result.kind, 'timed-out');
    const grandchild = Number(result.stderr);
    assert.ok(grandchild > 0);
    assert.ok(await isGone(grandchild), 'the grandchild still runs');
  });

  it('is killed at the deadline although the leader ignores SIGTERM', async (t) => {
    const result = await lateAfterStderr(t, 'trap "" TERM INT HUP; echo $$ >&2; sleep 600');
    assert.equal(result.kind, 'timed-out');
    assert.ok(await isGone(Number(result.stderr)));
  });

  it('is killed whole at an abort', async () => {
    const stop = new AbortController();
    const running = sh('sleep 300', { signal: stop.signal });
    stop.abort();
    assert.equal((await running).kind, 'aborted');
  });

  it('does not run on under a signal that is aborted already', async () => {
    assert.equal((await sh('sleep 300', { signal: AbortSignal.abort() })).kind, 'aborted');
  });

  it('keeps no listener on the signal', async () => {
    const stop = new AbortController();
    const remove = mock.method(stop.signal, 'removeEventListener');
    await sh('true', { signal: stop.signal });
    assert.equal(remove.mock.callCount(), 1);
  });

  it('loses what the leader leaves behind', async () => {
    const result = ran(await sh('sleep 300 >/dev/null 2>&1 & echo $!'));
    assert.equal(result.kind === 'exited' && result.exitCode, 0);
    assert.ok(await isGone(Number(result.stdout)), 'a child of the command outlived its verdict');
  });

  it('takes a deadline above the 32 bits of a timer for a long one', async () => {
    const result = await sh('sleep 0.05; exit 4', { timeoutMs: 2 ** 40 });
    assert.equal(result.kind === 'exited' && result.exitCode, 4);
  });
});

describe('what cannot be killed with the group', () => {
  /** A daemon in a session of its own that keeps the pipes open, as a badly written service does. */
  const daemonise = (pidFile: string): string =>
    `setsid sh -c 'echo $$ > ${pidFile}; exec sleep 600' & while [ ! -s ${pidFile} ]; do sleep 0.01; done`;

  it('does not delay the verdict when a daemon keeps the pipes', async () => {
    using dir = tempDir();
    const result = ran(await sh(`${daemonise(dir.join('pid'))}; echo said; exit 7`));
    const daemon = Number(readFileSync(dir.join('pid'), 'utf8'));
    assert.ok(isAlive(daemon));
    process.kill(daemon, 'SIGKILL');
    assert.equal(result.kind === 'exited' && result.exitCode, 7);
    assert.equal(result.stdout, 'said\n');
  });

  it('does not turn a verdict into a timeout, nor aim at an id that is free again', longCase, async () => {
    using dir = tempDir();
    const kill = mock.method(process, 'kill');
    const result = ran(await sh(`${daemonise(dir.join('pid'))}; exit 0`));
    const killed = kill.mock.calls.length;
    kill.mock.restore();
    process.kill(Number(readFileSync(dir.join('pid'), 'utf8')), 'SIGKILL');
    assert.equal(result.kind, 'exited');
    assert.equal(killed, 1, 'one kill, at the end of the leader');
  });

  it('ends at the deadline although the kernel forbids the kill', longCase, async (t) => {
    const kill = mock.method(process, 'kill', () => {
      throw Object.assign(new Error('kill EPERM'), { code: 'EPERM' });
    });
    const result = await lateAfterStderr(t, 'echo $$ >&2; exec sleep 600');
    kill.mock.restore();
    assert.equal(result.kind, 'timed-out');
    process.kill(Number(result.stderr), 'SIGKILL');
  });
});

// The one directory that all users of the host may read, observed from outside: by a continuous reader, by
// a watcher, and by another user.
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { wholeSystem } from '../../kit/agent/whole-system.js';
import { until } from '../../kit/assert/until.js';
import { startScript } from '../../kit/cli/child-script.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type TestHost, testHost } from '../../kit/host/test-host.js';
import { needs } from '../../kit/programs/real-programs.js';

/** Does one swap, and collects old generations as the agent does every hour. */
async function moveOn(test: TestHost, version: number): Promise<void> {
  const files = { 'first.yaml': `version: ${version}\n`, 'deep/second.yaml': `version: ${version}\n` };
  test.clock.setWallTime(Date.now());
  await test.publish('access', files, { serial: version });
  const result = await test.pull();
  assert.equal(result.outcome, 'activated', JSON.stringify(result));
}

interface ReaderReport {
  readonly rounds: number;
  readonly generations: number;
  readonly mixes: readonly string[];
  readonly failures: readonly string[];
}

/** Prints `ready`, reads until its input ends, then reports. Some rounds are slow, as in a worker that parses. */
const readerScript = (current: string): string => `
  import fs from 'node:fs';
  const seen = new Set(); const mixes = []; const failures = []; let rounds = 0; let ended = false;
  process.stdin.resume().once('end', () => { ended = true; });
  console.log('ready');
  while (!ended) {
    try {
      const generation = fs.realpathSync(${JSON.stringify(current)});
      const first = fs.readFileSync(generation + '/access/first.yaml', 'utf8');
      const pauseMs = rounds % 50 === 0 ? 100 : rounds % 5 === 0 ? 5 : 0;
      if (pauseMs > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, pauseMs);
      const second = fs.readFileSync(generation + '/access/deep/second.yaml', 'utf8');
      if (first !== second) mixes.push(generation + ': ' + first + second);
      seen.add(generation);
    } catch (error) { failures.push(String(error)); }
    rounds += 1;
    await new Promise((resolve) => setImmediate(resolve));
  }
  console.log(JSON.stringify({ rounds, generations: seen.size, mixes, failures }));
`;

describe('the public directory of a host', { timeout: 120_000 }, () => {
  it('shows one complete generation in each round to a reader that resolves `current` once, for 100 generations', async () => {
    using test = testHost({
      nowMs: Date.now(),
      config: { keep: { generations: 3, graceMs: 1000 } },
    });
    await moveOn(test, 1);
    const reader = startScript(readerScript(test.host.paths.current), { stdin: 'pipe' });
    let report = '';
    reader.child.stdout?.on('data', (chunk: Buffer) => {
      report += chunk.toString();
    });
    try {
      await reader.firstLine;
      for (let version = 2; version <= 100; version += 1) await moveOn(test, version);
      reader.child.stdin?.end();
      await until(() => report.includes('}\n'));
    } finally {
      reader.child.kill('SIGKILL');
    }
    const notified = JSON.parse(report.slice(report.indexOf('{'))) as ReaderReport;
    assert.deepEqual(notified.failures, []);
    assert.deepEqual(notified.mixes, []);
    assert.ok(
      notified.generations > 20,
      `it saw ${notified.generations} generations in ${notified.rounds} rounds`,
    );
    const left = readdirSync(test.host.paths.generations).length;
    assert.ok(left < 100, 'old generations were collected meanwhile');
  });

  it(
    'shows a watcher one create and one rename a swap, and no other change',
    needs('inotifywait', 'inotify-tools'),
    async () => {
      using test = testHost({ nowMs: Date.now() });
      await moveOn(test, 1);
      await using watcher = await watch(test.host.paths.policy);
      for (let version = 2; version <= 6; version += 1) await moveOn(test, version);
      await until(() => watcher.changes().filter((line) => line === 'MOVED_TO current').length === 5);
      const names = watcher.changes().map((line) => line.replace(/\.current-c-[0-9a-f]+$/, '(new link)'));
      const swap = ['CREATE (new link)', 'MOVED_FROM (new link)', 'MOVED_TO current'];
      assert.deepEqual(names, [swap, swap, swap, swap, swap].flat());
    },
  );

  it(
    'can be read by another user, and nothing else can, even when the agent starts under umask 077',
    process.getuid?.() === 0 ? needs('setpriv', 'util-linux') : { skip: 'only root can be another user' },
    async () => {
      using dir = tempDir();
      chmodSync(dir.path, 0o711);
      const bundles = [{ name: 'access', checks: [{ name: 'parses', parse: ['*.yaml'] }] }];
      await using writ = await wholeSystem(dir, { config: { bundles }, pollEvery: '30d' });
      const umask = process.umask(0o077);
      try {
        await writ.publish({ 'first.yaml': 'version: 1\n', 'deep/second.yaml': 'version: 1\n', '+run': 'x' });
        await writ.startAgent();
        assert.equal((await writ.pull()).exitCode, 0);
        await writ.rollback();
      } finally {
        process.umask(umask);
      }
      const current = join(writ.policy, 'current/access');
      assert.equal(asUnprivileged('cat', `${current}/first.yaml`), 'version: 1\n');
      assert.equal(asUnprivileged('cat', `${current}/deep/second.yaml`), 'version: 1\n');
      const files = asUnprivileged('find', '-L', current, '-type', 'f', '-readable');
      assert.equal(files.trim().split('\n').length, 3, files);
      assert.equal(asUnprivileged('find', writ.policy, '!', '-readable'), '');
      assert.equal(asUnprivileged('find', writ.policy, '!', '-type', 'l', '-writable'), '');
      assert.equal(asUnprivileged('find', writ.policy, '-type', 'd', '!', '-executable'), '');
      const own = everythingIn(writ.state).filter((path) => !path.startsWith(writ.policy));
      assert.ok(own.some((path) => path.endsWith('ledger.json')) && own.length > 8, own.join(' '));
      assert.equal(
        asUnprivileged('find', ...own, '-maxdepth', '0', '(', '-readable', '-o', '-writable', ')'),
        '',
      );
      const inRun = asUnprivileged('find', writ.run, '-mindepth', '1', '-readable');
      assert.deepEqual(inRun.trim().split('\n').sort(), [`${writ.run}/status.json`]);
    },
  );
});

interface Watcher extends AsyncDisposable {
  /** @returns events that change the directory, as `CREATE name`, without reads and the fsync of the directory */
  changes(): string[];
}

async function watch(directory: string): Promise<Watcher> {
  const child: ChildProcess = spawn('inotifywait', ['-m', '--format', '%e %f', directory], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const text = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name]?.on('data', (chunk: Buffer) => {
      text[name] += chunk.toString();
    });
  }
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await until(() => text.stderr.includes('Watches established'));
  return {
    changes: () => {
      const events = text.stdout.split('\n').slice(0, -1);
      return events.filter((event) => !/^(OPEN|ACCESS|CLOSE_NOWRITE,CLOSE),ISDIR /.test(event));
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

/** @returns the stdout of a command as user 65534 without groups; its errors are on stderr */
function asUnprivileged(program: string, ...args: readonly string[]): string {
  const user = ['--reuid=65534', '--regid=65534', '--clear-groups', '--', program, ...args];
  try {
    return execFileSync('setpriv', user, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    return (error as { stdout: string }).stdout;
  }
}

function everythingIn(directory: string): string[] {
  return readdirSync(directory).flatMap((name) => {
    const path = join(directory, name);
    return lstatSync(path).isDirectory() ? [path, ...everythingIn(path)] : [path];
  });
}

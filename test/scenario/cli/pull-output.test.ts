// The output of `writ pull` on a real host: the result on stdout, the steps on stderr, one exit code for each outcome,
// one JSON object for scripts, and no escape sequence without a terminal.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { copyHost, type InstalledHost, installHost } from '../../kit/agent/installed-host.js';
import { directoryState } from '../../kit/assert/directory-state.js';
import { longCase } from '../../kit/assert/long-case.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { leaveStaleSocket } from '../../kit/disk/stale-socket.js';
import { needs } from '../../kit/programs/real-programs.js';

let installed: InstalledHost;
before(async () => {
  installed = await installHost();
});
after(() => installed[Symbol.dispose]());

const escapeCharacter = '\u001b';
const policyFile = ({ paths }: InstalledHost): string => join(paths.current, 'dns-edge', 'block.rpz');

describe('writ pull without an agent', longCase, () => {
  it('prints its result on stdout and one line for each step on stderr, without an escape sequence', async () => {
    using host = copyHost(installed);
    const run = await host.writ('pull');
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(
      run.stdout,
      /^ACTIVATED generation 2 \(dns-edge 2, r2\) in [\d.]+ s\n {2}No worker is configured: nothing to confirm.\n$/,
    );
    const steps = run.stderr
      .trimEnd()
      .split('\n')
      .map((line) => line.split('\t'));
    const names = steps.flatMap(([, name = '']) => (name === '' ? [] : [name]));
    assert.deepEqual(names, ['refresh', 'select', 'fetch', 'stage', 'verify', 'flush', 'swap', 'reset']);
    for (const [time = ''] of steps) assert.match(time, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    assert.ok(!`${run.stdout}${run.stderr}`.includes(escapeCharacter));
  });

  it('reports UNCHANGED for the same release, and writes nothing but the lock', async () => {
    using host = copyHost(installed);
    await host.writ('pull');
    const before = directoryState(host.paths.state);
    const run = await host.writ('pull', '-q');
    assert.deepEqual([run.exitCode, run.stderr], [0, '']);
    assert.equal(run.stdout, 'UNCHANGED generation 2 is active (dns-edge 2)\n');
    const { lock: _lockAfter, ...after } = directoryState(host.paths.state);
    const { lock: _lockBefore, ...expected } = before;
    assert.deepEqual(after, expected);
  });

  it('downloads and verifies again with --force, and keeps an intact, current tree unchanged', async () => {
    using host = copyHost(installed);
    await host.writ('pull');
    const before = directoryState(host.paths.policy);
    const run = await host.writ('pull', '--force', '--json');
    const { outcome, exitCode, changed, generation, trigger } = jsonOf(run);
    assert.deepEqual([outcome, exitCode, changed, generation, trigger], ['unchanged', 0, false, 2, 'force']);
    assert.deepEqual(directoryState(host.paths.policy), before);
  });

  it('makes a new generation with --force in place of an edited tree', async () => {
    using host = copyHost(installed);
    await host.writ('pull');
    const edited = readlinkSync(host.paths.current);
    writeFileSync(policyFile(host), 'version evil\n');
    const run = await host.writ('pull', '--force', '--json');
    const { outcome, changed, fromGeneration } = jsonOf(run);
    assert.deepEqual([outcome, changed, fromGeneration], ['activated', true, 2], run.stdout);
    assert.notEqual(readlinkSync(host.paths.current), edited);
    assert.equal(readFileSync(policyFile(host), 'utf8'), 'version 2\n');
    // Readers may have the old tree open, so it is replaced and never repaired in place.
    const old = join(host.paths.policy, edited, 'dns-edge', 'block.rpz');
    assert.equal(readFileSync(old, 'utf8'), 'version evil\n');
  });
});

interface PullCase {
  readonly exit: number;
  readonly outcome: string;
  readonly block: RegExp;
  readonly next: 0 | 1;
  readonly generation: 1 | 2;
  /** Changes of the configuration. */
  readonly config: (host: InstalledHost) => Readonly<Record<string, unknown>>;
}

const check = (...run: string[]) => ({
  bundles: [{ name: 'dns-edge', checks: [{ name: 'zones parse', run }] }],
});
const load = (...run: string[]) => ({ workers: [{ name: 'resolver', uses: ['dns-edge'], load: { run } }] });

const pullCases: Readonly<Record<string, PullCase>> = {
  activated: {
    exit: 0,
    outcome: 'activated',
    block: /^ACTIVATED generation 2 /,
    next: 0,
    generation: 2,
    config: () => ({}),
  },
  'a check that is not installed': {
    exit: 1,
    outcome: 'failed',
    block: /^FAILED {2}dns-edge 2 \[CHECK_BROKEN\]\n[\s\S]*Generation 1 \(dns-edge 1\) stays active/,
    next: 1,
    generation: 1,
    config: () => check('/nonexistent/checker'),
  },
  'a check that rejects the release': {
    exit: 3,
    outcome: 'rejected',
    block:
      /^REJECTED {2}dns-edge 2 \[CHECK_FAILED\]\n[\s\S]*line 214[\s\S]*Generation 1 \(dns-edge 1\) stays active; no worker/,
    next: 1,
    generation: 1,
    config: () => check('sh', '-c', 'echo line 214: invalid address; exit 1'),
  },
  'an unreachable worker': {
    exit: 4,
    outcome: 'degraded',
    block:
      /^DEGRADED {2}generation 2 is active \(dns-edge 2[^\n]*1 of 1 worker not notified \[WORKER_UNREACHABLE\]/,
    next: 1,
    generation: 2,
    config: (host) => ({
      workers: [
        {
          name: 'resolver',
          uses: ['dns-edge'],
          reset: { kresd: host.dir.join('control', '*'), command: 'x()', expect: '0' },
        },
      ],
    }),
  },
  'a loader that fails': {
    exit: 5,
    outcome: 'rolled-back',
    block: /^ROLLED BACK {2}generation 1 is active again after [\d.]+ s \[LOADER_FAILED\]\n/,
    next: 1,
    generation: 1,
    config: () => load('sh', '-c', 'grep -q "version 1" {bundle}/block.rpz'),
  },
  'a check that defers the release': {
    exit: 8,
    outcome: 'deferred',
    block: /^DEFERRED {2}dns-edge 2 \[CHECK_DEFERRED\]\n[\s\S]*Generation 1 \(dns-edge 1\) stays active/,
    next: 1,
    generation: 1,
    config: () => check('sh', '-c', 'exit 75'),
  },
};

describe('the exit code and the last block of writ pull', longCase, () => {
  for (const [name, expected] of Object.entries(pullCases)) {
    it(`are ${expected.exit} and ${expected.outcome} for ${name}`, async () => {
      for (const json of [[], ['--json']]) {
        using host = copyHost(installed);
        mkdirSync(host.dir.join('control'));
        await leaveStaleSocket(host.dir.join('control', '1'));
        host.configure(expected.config(host));
        const run = await host.writ('pull', '-q', ...json);
        assert.equal(run.exitCode, expected.exit, run.stdout + run.stderr);
        assert.equal(readFileSync(policyFile(host), 'utf8'), `version ${expected.generation}\n`);
        assert.equal(run.stderr, '');
        if (json.length === 0) {
          assert.match(run.stdout, expected.block);
          assert.equal(run.stdout.match(/^Next: /gm)?.length ?? 0, expected.next);
        } else {
          const { outcome, exitCode, schema, type } = jsonOf(run);
          assert.deepEqual(
            [outcome, exitCode, schema, type],
            [expected.outcome, expected.exit, 1, 'pull.result'],
          );
        }
      }
    });
  }
});

describe('an invalid command line', longCase, () => {
  it('exits 2, with the likely command as a hint on stderr', async () => {
    const run = await runWrit(['pul']);
    assert.deepEqual([run.exitCode, run.stdout], [2, '']);
    assert.match(run.stderr, /^error\[USAGE\]: [^\n]*pul[^\n]*\nhint: [^\n]*pull[^\n]*\n$/);
  });

  it('prints one JSON object on stdout with --json', async () => {
    for (const args of [['pul'], ['pull', '--forc'], ['pull', '--exit-unchanged', 'x'], []]) {
      const run = await runWrit([...args, '--json']);
      assert.deepEqual([run.exitCode, run.stderr], [2, ''], args.join(' '));
      const { code, exitCode, schema, hint } = jsonOf(run);
      assert.deepEqual([code, exitCode, schema, typeof hint], ['USAGE', 2, 1, 'string']);
    }
  });
});

describe('writ pull on a terminal', { ...needs('script', 'bsdutils'), ...longCase }, () => {
  const pullOnTerminal = (host: InstalledHost, env: Readonly<Record<string, string>>): string => {
    const command = [process.execPath, writProgram, 'pull', '--config', host.config].join(' ');
    const { stdout } = spawnSync('script', ['-qec', command, '/dev/null'], {
      env: { PATH: process.env['PATH'], TERM: 'xterm', ...env },
      encoding: 'utf8',
      timeout: 60_000,
    });
    return stdout;
  };

  it('colours the outcome and keeps its word, and NO_COLOR removes the colours', () => {
    using plain = copyHost(installed);
    using coloured = copyHost(installed);
    const isColour = new RegExp(`${escapeCharacter}\\[\\d+m`);
    const text = pullOnTerminal(plain, { NO_COLOR: '1' });
    assert.match(text, /ACTIVATED generation 2/);
    assert.doesNotMatch(text, isColour);
    const painted = pullOnTerminal(coloured, {});
    assert.match(painted, isColour);
    assert.match(painted, /ACTIVATED/);
  });
});

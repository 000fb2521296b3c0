// The commands that request a cycle from an agent, as a user runs them, against a scripted agent.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { bundleResult, cycleResult, problem } from '../../kit/cli/cycle-results.js';
import { fakeAgent } from '../../kit/cli/fake-agent.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { withAgent } from '../../kit/cli/with-agent.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

const checkFailed = problem(
  'CHECK_FAILED',
  'zones parse refused dns-edge 42\nblock.rpz:214: invalid IPv4 address',
);
const steps = [
  { type: 'cycle.started', cycle: 'c-7f20', trigger: 'pull', atMs: 0 },
  { type: 'step.started', cycle: 'c-7f20', step: 'refresh' },
  {
    type: 'step.finished',
    cycle: 'c-7f20',
    step: 'refresh',
    verdict: 'ok',
    text: 'timestamp v1310',
    durationMs: 100,
  },
  { type: 'step.finished', cycle: 'c-7f20', step: 'canary', verdict: 'skip', text: '', durationMs: 0 },
];

/** A command whose user presses Ctrl-C after the agent received its request. */
async function interrupted(command: string, answer: readonly object[]) {
  using dir = tempDir();
  const config = dir.join('agent.yaml');
  writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\nrun: ${dir.path}\n`);
  const child = spawn(process.execPath, [writProgram, command, '--config', config]);
  await using _agent = await fakeAgent({
    path: dir.join('agent.sock'),
    answer: () => {
      if (answer.length === 0) child.kill('SIGINT');
      return answer;
    },
    afterwards: 'hang',
  });
  // The command prints the first step after it read it. From then on it knows that its cycle has begun.
  child.stderr.once('data', () => child.kill('SIGINT'));
  let stdout = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  const exitCode = await new Promise((resolve) => child.on('close', resolve));
  return { exitCode, stdout };
}

describe('writ pull', () => {
  it('sends the request to the agent, and prints its steps on stderr and its result on stdout', async () => {
    const { run, requests } = await withAgent(['pull'], () => [...steps, cycleResult('activated')]);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.deepEqual(requests, [{ type: 'pull', force: false, by: 'anna' }]);
    assert.equal(run.stdout, 'ACTIVATED generation 18 (dns-edge 42, 4f1c2e9) in 1.1 s\n');
    // Without a terminal: one line for each finished step, with an RFC 3339 time and tabs.
    assert.match(run.stderr, /^\d{4}-\d\d-\d\dT[\d:.]+Z\trefresh\tok\ttimestamp v1310\t[\d.]+ s\n$/);
  });

  it('exits with the code of the outcome, and names the configuration in the next command', async () => {
    const result = cycleResult('rejected', {
      bundles: [bundleResult('rejected', { problem: checkFailed })],
      problems: [checkFailed],
    });
    const { run, config } = await withAgent(['pull', '--force'], () => [result]);
    assert.equal(run.exitCode, 3);
    assert.match(run.stdout, /^REJECTED {2}dns-edge 42 \[CHECK_FAILED\]\n/);
    assert.ok(run.stdout.endsWith(`Next: writ history --cycle c-7f20 --config ${config}\n`), run.stdout);
  });

  it('prints one JSON object with --json, with code and hint after a failure', async () => {
    const result = cycleResult('rejected', {
      bundles: [bundleResult('rejected', { problem: checkFailed })],
      problems: [checkFailed],
    });
    const { run, requests } = await withAgent(['pull', '--force', '--json'], () => [...steps, result]);
    assert.equal(run.exitCode, 3);
    assert.equal(run.stderr, '');
    assert.equal(requests[0]?.['force'], true);
    const { schema, type, outcome, exitCode, code, hint, changed, generation, cycle } = jsonOf(run);
    assert.deepEqual(
      { schema, type, outcome, exitCode, code, hint, changed, generation, cycle },
      {
        schema: 1,
        type: 'pull.result',
        outcome: 'rejected',
        exitCode: 3,
        code: 'CHECK_FAILED',
        hint: checkFailed.hint,
        changed: false,
        generation: 17,
        cycle: 'c-7f20',
      },
    );
  });

  it('exits with the code of --exit-unchanged only when nothing changed', async () => {
    const unchanged = await withAgent(['pull', '--exit-unchanged', '77'], () => [cycleResult('unchanged')]);
    assert.equal(unchanged.run.exitCode, 77);
    const activated = await withAgent(['pull', '--exit-unchanged', '77'], () => [cycleResult('activated')]);
    assert.equal(activated.run.exitCode, 0);
  });

  it('exits with the code of an error that the agent returns', async () => {
    const { run } = await withAgent(['pull', '--json'], () => [
      {
        type: 'error',
        code: 'AGENT_STOPPING',
        message: 'the agent is shutting down',
        hint: 'later',
        facts: {},
      },
    ]);
    assert.equal(run.exitCode, 8);
    assert.equal(jsonOf(run)['code'], 'AGENT_STOPPING');
  });

  it('warns once when the agent has a different version', async () => {
    const { run } = await withAgent(['pull', '-q'], () => [cycleResult('unchanged')], { version: '9.9.9' });
    assert.equal(run.exitCode, 0);
    assert.equal(run.stderr.split('\n').filter((line) => line.startsWith('warning')).length, 1);
    assert.match(run.stderr, /9\.9\.9/);
  });

  it('exits 130 on Ctrl-C, and prints that the cycle continues', async () => {
    const { exitCode, stdout } = await interrupted('pull', steps);
    assert.equal(exitCode, 130);
    assert.match(stdout, /^INTERRUPTED .*continues/);
  });

  it('exits 130 on Ctrl-C while the cycle of another request runs, and prints that the agent abandons this request', async () => {
    const other = { cycle: 'c-1111', step: 'fetch' } as const;
    const { exitCode, stdout } = await interrupted('pull', [
      { type: 'cycle.awaited', trigger: 'poll', ...other },
      { type: 'step.progress', doneBytes: 1, totalBytes: 2, ...other },
    ]);
    assert.equal(exitCode, 130);
    assert.match(stdout, /^INTERRUPTED .*waiting for its turn; the agent gives up/);
  });

  for (const command of ['pull', 'reload', 'rollback'])
    it(`exits 130 on Ctrl-C before its cycle starts, and prints that the agent abandons the request: ${command}`, async () => {
      const { exitCode, stdout } = await interrupted(command, []);
      assert.equal(exitCode, 130);
      assert.match(stdout, /^INTERRUPTED .*waiting for its turn; the agent gives up/);
    });

  it('exits 2 with CONFIG_UNREADABLE when the configuration is missing', async () => {
    const run = await runWrit(['pull', '--config', '/nonexistent/agent.yaml', '--json']);
    assert.equal(run.exitCode, 2);
    assert.equal(jsonOf(run)['code'], 'CONFIG_UNREADABLE');
  });
});

describe('writ rollback', () => {
  const back = cycleResult('activated', {
    type: 'rollback.result',
    trigger: 'rollback',
    fromGeneration: 18,
    generation: 17,
  });

  it('requests the previous generation, or the one that is named', async () => {
    const previous = await withAgent(['rollback'], () => [back]);
    assert.equal(previous.run.exitCode, 0, previous.run.stderr);
    assert.deepEqual(previous.requests, [{ type: 'rollback', by: 'anna' }]);
    const named = await withAgent(['rollback', '17', '--reason', 'eu is broken', '--json'], () => [back]);
    assert.deepEqual(named.requests, [
      { type: 'rollback', by: 'anna', generation: 17, reason: 'eu is broken' },
    ]);
    assert.equal(jsonOf(named.run)['type'], 'rollback.result');
  });

  it('exits 2 for an invalid generation or reason, and sends no request', async () => {
    for (const args of [
      ['rollback', '--', '-1'],
      ['rollback', 'latest'],
      ['rollback', '17', '--reason', ''],
    ]) {
      const { run, requests } = await withAgent(args, () => [back]);
      assert.equal(run.exitCode, 2);
      assert.match(run.stderr, /^error\[USAGE\]/);
      assert.deepEqual(requests, []);
    }
  });
});

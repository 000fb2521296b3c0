// The commands as a user runs them, against an agent that answers from a script.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { SocketMessage } from '../../src/core/socket-protocol.js';
import { bundleResult, cycleResult, problem } from '../support/cycle-results.js';
import { type FakeAgent, fakeAgent } from '../support/fake-agent.js';
import { jsonOf, runWrit, type WritRun } from '../support/run-writ.js';
import { historyEntries, statusReport } from '../support/status-reports.js';
import { tempDir } from '../support/temp-dir.js';

interface Session {
  readonly run: WritRun;
  readonly requests: FakeAgent['requests'];
  readonly config: string;
}

async function withAgent(
  args: readonly string[],
  answer: (request: SocketMessage) => readonly (object | string)[],
  more: { readonly version?: string; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<Session> {
  using dir = tempDir();
  const config = dir.join('agent.yaml');
  writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\nrun: ${dir.path}\n`);
  await using agent = await fakeAgent({
    path: dir.join('agent.sock'),
    answer,
    ...(more.version === undefined ? {} : { version: more.version }),
  });
  const env = { SUDO_USER: 'anna', WRIT_CONFIG: config, ...more.env };
  return { run: await runWrit(args, { env }), requests: agent.requests, config };
}

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

describe('writ pull', () => {
  it('asks the agent, tells its steps on stderr and its result on stdout', async () => {
    const { run, requests } = await withAgent(['pull'], () => [...steps, cycleResult('activated')]);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.deepEqual(requests, [{ type: 'pull', force: false, by: 'anna' }]);
    assert.equal(run.stdout, 'ACTIVATED generation 18 (dns-edge 42, 4f1c2e9) in 1.1 s\n');
    // No terminal: one line a finished step, an RFC 3339 time, tabs.
    assert.match(run.stderr, /^\d{4}-\d\d-\d\dT[\d:.]+Z\trefresh\tok\ttimestamp v1310\t[\d.]+ s\n$/);
  });

  it('exits with the outcome and names the configuration in its next step', async () => {
    const result = cycleResult('rejected', {
      bundles: [bundleResult('rejected', { problem: checkFailed })],
      problems: [checkFailed],
    });
    const { run, config } = await withAgent(['pull', '--force'], () => [result]);
    assert.equal(run.exitCode, 3);
    assert.match(run.stdout, /^REJECTED {2}dns-edge 42 \[CHECK_FAILED\]\n/);
    assert.ok(run.stdout.endsWith(`Next: writ history --cycle c-7f20 --config ${config}\n`), run.stdout);
  });

  it('answers one JSON object, with code and hint when it failed', async () => {
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

  it('exits as asked when nothing changed, and only then', async () => {
    const unchanged = await withAgent(['pull', '--exit-unchanged', '77'], () => [cycleResult('unchanged')]);
    assert.equal(unchanged.run.exitCode, 77);
    const activated = await withAgent(['pull', '--exit-unchanged', '77'], () => [cycleResult('activated')]);
    assert.equal(activated.run.exitCode, 0);
  });

  it('passes on what the agent cannot do', async () => {
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

  it('warns once when the agent has another version', async () => {
    const { run } = await withAgent(['pull', '-q'], () => [cycleResult('unchanged')], { version: '9.9.9' });
    assert.equal(run.exitCode, 0);
    assert.equal(run.stderr.split('\n').filter((line) => line.startsWith('warning')).length, 1);
    assert.match(run.stderr, /9\.9\.9/);
  });

  it('says on Ctrl-C that the cycle goes on, and exits with 130', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\nrun: ${dir.path}\n`);
    const entry = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.js');
    const child = spawn(process.execPath, [entry, 'pull', '--config', config]);
    await using _agent = await fakeAgent({
      path: dir.join('agent.sock'),
      answer: () => {
        child.kill('SIGINT');
        return steps;
      },
      afterwards: 'hang',
    });
    let stdout = '';
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += chunk.toString();
    });
    const exitCode = await new Promise((resolve) => child.on('close', resolve));
    assert.equal(exitCode, 130);
    assert.match(stdout, /^INTERRUPTED .*goes on/);
  });

  it('refuses a configuration that is not there', async () => {
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

  it('asks for the previous generation, or for the one that is named', async () => {
    const previous = await withAgent(['rollback'], () => [back]);
    assert.equal(previous.run.exitCode, 0, previous.run.stderr);
    assert.deepEqual(previous.requests, [{ type: 'rollback', by: 'anna' }]);
    const named = await withAgent(['rollback', '17', '--reason', 'eu is broken', '--json'], () => [back]);
    assert.deepEqual(named.requests, [
      { type: 'rollback', by: 'anna', generation: 17, reason: 'eu is broken' },
    ]);
    assert.equal(jsonOf(named.run)['type'], 'rollback.result');
  });

  it('refuses what is no generation before it asks anybody', async () => {
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

describe('writ status', () => {
  it('shows the report, for people and as JSON', async () => {
    const people = await withAgent(['status'], () => [statusReport()]);
    assert.equal(people.run.exitCode, 0, people.run.stderr);
    assert.match(people.run.stdout, /^ACTIVE {2}generation 18 is active {4}edge-fra1-03\n/);
    const script = await withAgent(['status', '--json'], () => [statusReport()]);
    const { schema, type, outcome, generation, freshness } = jsonOf(script.run);
    assert.deepEqual(
      { schema, type, outcome, generation, freshness },
      {
        schema: 1,
        type: 'status.result',
        outcome: 'active',
        generation: 18,
        freshness: statusReport().freshness,
      },
    );
  });

  it('finds the socket of a configuration with a mistake further down', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    writeFileSync(config, `run: ${dir.path}\nnonsense: 1\n`);
    await using _agent = await fakeAgent({ path: dir.join('agent.sock'), answer: () => [statusReport()] });
    const run = await runWrit(['status', '--config', config]);
    assert.equal(run.exitCode, 0, run.stderr);
  });
});

describe('writ history', () => {
  it('lists the newest cycles, as many as asked for', async () => {
    const { run, requests } = await withAgent(['history', '-n', '3'], () => [
      ...historyEntries,
      { type: 'end' },
    ]);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.deepEqual(requests, [{ type: 'history', limit: 3 }]);
    assert.equal(run.stdout.trimEnd().split('\n').length, 4);
  });

  it('shows all of one cycle', async () => {
    const { run, requests } = await withAgent(['history', '--cycle', 'c-7f20'], () => [
      historyEntries[1]!,
      { type: 'end' },
    ]);
    assert.deepEqual(requests, [{ type: 'history', limit: 1, cycle: 'c-7f20' }]);
    assert.match(run.stdout, /block\.rpz:214: invalid IPv4 address/);
  });

  it('says when there is no such cycle', async () => {
    const { run } = await withAgent(['history', '--cycle', 'c-1', '--json'], () => [{ type: 'end' }]);
    assert.equal(run.exitCode, 2);
    assert.equal(jsonOf(run)['code'], 'USAGE');
  });
});

describe('writ resume', () => {
  it('says what it ended, or that nothing was in the way', async () => {
    const ended = [{ kind: 'hold', what: 'dns-edge 42' }];
    const some = await withAgent(['resume'], () => [{ schema: 1, type: 'resume.result', ended }]);
    assert.match(some.run.stdout, /^RESUMED\n {2}hold of dns-edge 42 has ended\nNext: writ pull/);
    const none = await withAgent(['resume', '--json'], () => [
      { schema: 1, type: 'resume.result', ended: [] },
    ]);
    assert.equal(jsonOf(none.run)['outcome'], 'unchanged');
    assert.equal(none.run.exitCode, 0);
  });
});

describe('writ pause', () => {
  const answered = (request: SocketMessage): readonly object[] => {
    const { by, reason, untilMs } = request;
    const pause = { by, reason, atMs: 1, ...(untilMs === undefined ? {} : { untilMs }) };
    return [{ schema: 1, type: 'pause.result', pause }];
  };

  it('asks with who, why and until when, and says how it ends', async () => {
    const until = ['pause', '--until', '2026-12-27T09:00+01:00', '--reason', 'holidays'];
    const { run, requests } = await withAgent(until, answered);
    const untilMs = Date.UTC(2026, 11, 27, 8);
    assert.deepEqual(requests[0], { type: 'pause', by: 'anna', reason: 'holidays', untilMs });
    assert.match(run.stdout, /^PAUSED {4}until 12-27 08:00 UTC\n/);
    assert.match(run.stdout, /\nNext: writ resume/);
    const open = await withAgent(['pause', '--reason', 'r', '--json'], answered);
    assert.equal(open.requests[0]?.['untilMs'], undefined);
    assert.deepEqual([jsonOf(open.run)['outcome'], open.run.exitCode], ['paused', 0]);
  });

  it('counts --for from now', async () => {
    const before = Date.now();
    const { requests } = await withAgent(['pause', '--for', '2h', '--reason', 'r'], answered);
    const untilMs = Number(requests[0]?.['untilMs']) - 7_200_000;
    assert.ok(untilMs >= before && untilMs <= Date.now());
  });

  for (const args of [
    ['--for', '2h'],
    ['--reason', ''],
    ['--reason', 'x'.repeat(201)],
    ['--reason', 'r', '--for', '2h', '--until', '2026-12-27T08:00Z'],
    ['--reason', 'r', '--until', 'tomorrow'],
    ['--reason', 'r', '--until', '2026-12-27T08:00'],
    ['--reason', 'r', '--until', '2026-13-27T08:00Z'],
  ]) {
    it(`refuses ${args.join(' ').slice(0, 60)}`, async () => {
      const { run, requests } = await withAgent(['pause', ...args], answered);
      assert.deepEqual([run.exitCode, requests], [2, []]);
    });
  }
});

describe('writ config show', () => {
  it('prints each value with where it comes from', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\npoll: { every: 1m }\n`);
    const run = await runWrit(['config', 'show', '--config', config]);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^ {2}poll\.every +1 min +file$/m);
    assert.match(run.stdout, /^ {2}state +\/var\/lib\/writ +default$/m);
  });

  it('names every mistake of a file, also as JSON', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    writeFileSync(config, `pol: 1\nbundles: []\n`);
    const people = await runWrit(['config', 'show', '--config', config]);
    assert.equal(people.exitCode, 2);
    assert.match(people.stderr, /^ {2}1:1 \/pol: unknown key/m);
    const script = await runWrit(['config', 'show', '--config', config, '--json']);
    const { code, facts } = jsonOf(script) as { code: string; facts: { mistakes: unknown[] } };
    assert.equal(code, 'CONFIG_INVALID');
    assert.equal(facts.mistakes.length, 3);
  });
});

// The commands about an agent that request no cycle, as a user runs them, against a scripted agent.
import assert from 'node:assert/strict';
import { chmodSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { longCase } from '../../kit/assert/long-case.js';
import { fakeAgent } from '../../kit/cli/fake-agent.js';
import { jsonOf, runWrit } from '../../kit/cli/run-writ.js';
import { historyEntries, statusReport } from '../../kit/cli/status-reports.js';
import { withAgent } from '../../kit/cli/with-agent.js';
import { runWritProcess } from '../../kit/cli/writ-process.js';
import { tempDir } from '../../kit/disk/temp-dir.js';

describe('writ status', () => {
  it('prints the status report as text, and as JSON with --json', async () => {
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

  it('connects to the socket of a configuration that has a mistake elsewhere', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    writeFileSync(config, `run: ${dir.path}\nnonsense: 1\n`);
    await using _agent = await fakeAgent({ path: dir.join('agent.sock'), answer: () => [statusReport()] });
    const run = await runWrit(['status', '--config', config]);
    assert.equal(run.exitCode, 0, run.stderr);
  });
});

describe('writ history', () => {
  it('prints as many lines as -n asks for, and requests more entries for them', async () => {
    const answer = () => [...historyEntries, ...historyEntries, { type: 'end' }];
    const { run, requests } = await withAgent(['history', '-n', '3'], answer);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.deepEqual(requests, [{ type: 'history', limit: 1000 }]);
    assert.equal(run.stdout.trimEnd().split('\n').length, 4);
    const { entries } = jsonOf((await withAgent(['history', '-n', '3', '--json'], answer)).run);
    assert.equal((entries as unknown[]).length, 3);
  });

  it('prints every line of the cycle that --cycle names', async () => {
    const { run, requests } = await withAgent(['history', '--cycle', 'c-7f20'], () => [
      historyEntries[1]!,
      { type: 'end' },
    ]);
    assert.deepEqual(requests, [{ type: 'history', limit: 1, cycle: 'c-7f20' }]);
    assert.match(run.stdout, /block\.rpz:214: invalid IPv4 address/);
  });

  it('exits 2 with USAGE when no cycle has the id of --cycle', async () => {
    const { run } = await withAgent(['history', '--cycle', 'c-1', '--json'], () => [{ type: 'end' }]);
    assert.equal(run.exitCode, 2);
    assert.equal(jsonOf(run)['code'], 'USAGE');
  });
});

describe('writ config show', () => {
  it('prints each value with its source: the file or the default', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\npoll: { every: 1m }\n`);
    const run = await runWrit(['config', 'show', '--config', config]);
    assert.equal(run.exitCode, 0, run.stderr);
    assert.match(run.stdout, /^ {2}poll\.every +1 min +file$/m);
    assert.match(run.stdout, /^ {2}state +\/var\/lib\/writ +default$/m);
    const script = await runWrit(['config', 'show', '--config', config, '--json']);
    assert.equal(jsonOf(script)['type'], 'config-show.result');
  });

  it('names every mistake of a file, also with --json', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    writeFileSync(config, `unheard: 1\nbundles: []\n`);
    const people = await runWrit(['config', 'show', '--config', config]);
    assert.equal(people.exitCode, 2);
    assert.match(people.stderr, /^ {2}1:1 \/unheard: unknown key/m);
    const script = await runWrit(['config', 'show', '--config', config, '--json']);
    const { code, facts, type } = jsonOf(script) as {
      code: string;
      facts: { mistakes: unknown[] };
      type: string;
    };
    assert.deepEqual([code, type], ['CONFIG_INVALID', 'config-show.result']);
    assert.equal(facts.mistakes.length, 3);
  });
});

describe('writ config show of a proxy', () => {
  it('prints the path of the credentials file, and nothing of its content', async () => {
    using dir = tempDir();
    const [config, credentialsFile] = [dir.join('agent.yaml'), dir.join('proxy.credentials')];
    writeFileSync(credentialsFile, 'anna:unspoken-word\n', { mode: 0o600 });
    const proxy = { url: 'http://proxy.test:3128', credentialsFile };
    const file = { repository: 'https://policy.test/', bundles: [{ name: 'dns' }], proxy };
    writeFileSync(config, JSON.stringify(file));
    for (const more of [[], ['--json']]) {
      const { exitCode, stdout, stderr } = await runWrit(['config', 'show', '--config', config, ...more]);
      assert.equal(exitCode, 0, stderr);
      assert.ok(stdout.includes(credentialsFile) && stdout.includes('http://proxy.test:3128'), stdout);
      assert.doesNotMatch(stdout + stderr, /anna|unspoken/);
    }
  });
});

describe('a user without the right to connect to the agent', longCase, () => {
  const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can become another user' };
  it('receives the command with sudo and --config to paste', asRoot, async () => {
    using dir = tempDir();
    chmodSync(dir.path, 0o755);
    const config = dir.join('agent.yaml');
    writeFileSync(config, `repository: https://a/\nbundles: [{ name: dns-edge }]\nrun: ${dir.path}\n`);
    await using _agent = await fakeAgent({ path: dir.join('agent.sock'), answer: () => [] });
    const under = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    for (const command of ['status', 'history', 'pull']) {
      const run = await runWritProcess([command, '--config', config, '--json'], { under });
      const { code, hint } = jsonOf(run);
      assert.deepEqual([code, hint], ['AGENT_UNREACHABLE', `sudo writ ${command} --config ${config}`]);
    }
  });
});

// `writ health` as a monitor runs it: with an agent, after the agent ended, and for a user without the right to connect.
import assert from 'node:assert/strict';
import { chmodSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { StatusReport } from '../../../../src/core/protocol/control-protocol.js';
import { copyHost, type InstalledHost, installHost } from '../../../kit/agent/installed-host.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { problem } from '../../../kit/cli/cycle-results.js';
import { fakeAgent } from '../../../kit/cli/fake-agent.js';
import { jsonOf, runWrit, type WritRun } from '../../../kit/cli/run-writ.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
import { startWrit } from '../../../kit/cli/writ-process.js';
import { tempDir } from '../../../kit/disk/temp-dir.js';

async function health(report: StatusReport, ...args: readonly string[]): Promise<WritRun> {
  using dir = tempDir();
  const config = dir.join('agent.yaml');
  writeFileSync(config, `run: ${dir.path}\n`);
  await using _agent = await fakeAgent({ path: dir.join('agent.sock'), answer: () => [report] });
  return await runWrit(['health', '--config', config, ...args]);
}

const stale = statusReport({ freshness: { state: 'stale' } });
const untrusted = statusReport({ problems: [problem('UNTRUSTED_ACTIVE', 'access 9 is active and foreign')] });

describe('writ health', () => {
  it('prints one line and exits 0, 1 or 2', async () => {
    const ok = await health(statusReport({ freshness: { state: 'fresh', ageMs: 120_000 } }));
    assert.deepEqual(
      [ok.exitCode, ok.stdout],
      [0, 'OK  generation 18 is active, proven current 2 min ago    edge-fra1-03\n'],
    );
    const warning = await health(stale);
    assert.equal(warning.exitCode, 1);
    assert.match(warning.stdout, /^WARNING {2}metadata is stale \[STALE\] {4}edge-fra1-03\n$/);
    const critical = await health(untrusted);
    assert.equal(critical.exitCode, 2);
    assert.match(critical.stdout, /^CRITICAL {2}access 9 is active and foreign \[UNTRUSTED_ACTIVE\] {4}/);
  });

  it('exits 2 only for critical with --fail-on critical', async () => {
    assert.equal((await health(stale, '--fail-on', 'critical')).exitCode, 0);
    assert.equal((await health(untrusted, '--fail-on', 'critical')).exitCode, 2);
  });

  it('prints every finding with its level and code with --json', async () => {
    const run = await health(untrusted, '--json');
    const { type, outcome, findings } = JSON.parse(run.stdout) as Record<string, unknown>;
    assert.deepEqual([type, outcome], ['health.result', 'critical']);
    assert.deepEqual(findings, [
      { level: 'critical', code: 'UNTRUSTED_ACTIVE', text: 'access 9 is active and foreign' },
    ]);
  });

  it('names the first mistake of an invalid configuration', longCase, async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    writeFileSync(config, 'bundle: []\n');
    const { stdout, exitCode } = await runWrit(['health', '--config', config]);
    assert.equal(exitCode, 2);
    assert.match(stdout, /^CRITICAL .* mistakes: 1:1 .+ \(and \d more\) \[CONFIG_INVALID\]\n$/);
  });

  it('evaluates the state directory of a host without an agent, and reports NO_AGENT', longCase, async () => {
    using host = await installHost();
    const run = await host.writ('health');
    assert.equal(run.exitCode, 1, run.stdout);
    assert.match(
      run.stdout,
      /^WARNING {2}no agent runs, .*, and the bake time of dns-edge does not pass \[NO_AGENT\] /,
    );
  });

  it('is critical when the configuration is missing', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    const run = await runWrit(['health', '--config', config]);
    assert.equal(run.exitCode, 2);
    assert.match(run.stdout, /^CRITICAL .*\[CONFIG_UNREADABLE\]/);
    assert.equal((await runWrit(['health', '--config', config, '--fail-on', 'critical'])).exitCode, 2);
  });
});

const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can become another user' };
const unprivileged = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];

describe('writ health of a user without the right to read the state', asRoot, () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  /** @returns exit code, outcome and source with a status.json of this age and the socket of a running agent */
  const healthFromFile = async (ageMs: number, more: Partial<StatusReport> = {}, mode = 0o644) => {
    using host = copyHost(installed);
    chmodSync(host.dir.path, 0o755);
    await using _agent = await fakeAgent({ path: host.dir.join('run/agent.sock'), answer: () => [] });
    chmodSync(host.dir.join('run/agent.sock'), 0o600);
    const report = statusReport({ atMs: Date.now() - ageMs, ...more });
    const file = host.dir.join('run/status.json');
    writeFileSync(file, JSON.stringify(report));
    chmodSync(file, mode);
    const run = await host.writUnder(unprivileged, 'health', '--json');
    return [run.exitCode, jsonOf(run)['outcome'], jsonOf(run)['source']];
  };

  it('uses status.json, which the agent writes every minute', longCase, async () => {
    assert.deepEqual(await healthFromFile(60_000, { trust: [] }), [0, 'ok', 'file']);
    const stale = { trust: [], freshness: { state: 'stale' } } as const;
    assert.deepEqual(await healthFromFile(60_000, stale), [1, 'warning', 'file']);
  });

  it(
    'uses the same status source as writ status, which prints the age of status.json',
    longCase,
    async () => {
      using host = copyHost(installed);
      chmodSync(host.dir.path, 0o755);
      await using _agent = await fakeAgent({ path: host.dir.join('run/agent.sock'), answer: () => [] });
      chmodSync(host.dir.join('run/agent.sock'), 0o600);
      const file = host.dir.join('run/status.json');
      const statusFromFile = async (ageMs: number): Promise<string> => {
        writeFileSync(file, JSON.stringify(statusReport({ atMs: Date.now() - ageMs })));
        chmodSync(file, 0o644);
        const { exitCode, stdout, stderr } = await host.writUnder(unprivileged, 'status');
        return `${exitCode} ${stdout}${stderr}`;
      };
      assert.match(
        await statusFromFile(120_000),
        /^0 ACTIVE {2}.*\n {2}by {8}status\.json, 2 min(?: \d+ s)? old: this user cannot open a socket/,
      );
      assert.match(
        await statusFromFile(600_000),
        /^1 error\[AGENT_UNREACHABLE\]: .*its last status is 10 min(?: \d+ s)? old/,
      );
    },
  );

  it('names the state directory where no agent listens and the user cannot read the state', async () => {
    using host = copyHost(installed);
    chmodSync(host.dir.path, 0o755);
    chmodSync(host.dir.join('state'), 0o700);
    const file = host.dir.join('run/status.json');
    writeFileSync(file, JSON.stringify(statusReport({ atMs: Date.now() - 60_000, agent: 'stop' })));
    chmodSync(file, 0o644);
    const { exitCode, stdout } = await host.writUnder(unprivileged, 'status');
    assert.match(
      `${exitCode} ${stdout}`,
      /^0 .*\n {2}by {8}status\.json, 1 min(?: \d+ s)? old: no agent listens, and this user cannot read the state directory/,
    );
  });

  it('names the command with sudo for a user without the right to read the state', async () => {
    using host = copyHost(installed);
    chmodSync(host.dir.path, 0o755);
    rmSync(host.dir.join('run/status.json'), { force: true });
    const { exitCode, stderr } = await host.writUnder(unprivileged, 'status');
    assert.match(
      `${exitCode} ${stderr}`,
      /^1 error\[DISK_DENIED\]: this user has no right to read .*\/state, and no agent listens on .*\nhint: sudo writ status --config /,
    );
  });

  it('is unknown, neither ok nor critical, when status.json is old, from the future or unreadable', async () => {
    const unknown = [3, 'unknown', undefined];
    assert.deepEqual(await healthFromFile(181_000), unknown);
    assert.deepEqual(await healthFromFile(-600_000), unknown);
    assert.deepEqual(await healthFromFile(0, {}, 0o600), unknown);
  });

  it(
    'is unknown when no agent runs and the state is unreadable, also with --fail-on critical',
    longCase,
    async () => {
      using host = copyHost(installed);
      chmodSync(host.dir.path, 0o755);
      rmSync(host.dir.join('run/status.json'), { force: true });
      for (const args of [[], ['--fail-on', 'critical']]) {
        const run = await host.writUnder(unprivileged, 'health', ...args);
        assert.equal(run.exitCode, 3, run.stdout);
        assert.match(run.stdout, /^UNKNOWN {2}this user has no right to read .*\[DISK_DENIED\]\n$/);
      }
      chmodSync(host.config, 0o600);
      assert.equal((await host.writUnder(unprivileged, 'health')).exitCode, 3);
    },
  );

  it(
    'requests the status on the read socket of the group, as status does, while a pull is refused',
    longCase,
    async () => {
      using host = copyHost(installed);
      chmodSync(host.dir.path, 0o755);
      host.configure({ read: { group: 65_534 } });
      await using agent = startWrit(['agent', '--config', host.config]);
      await agent.waitForStderr(/"state":"run"/);
      const run = await host.writUnder(unprivileged, 'health', '--json');
      assert.deepEqual([run.exitCode, jsonOf(run)['source'], jsonOf(run)['agent']], [0, 'agent', 'run']);
      const status = await host.writUnder(unprivileged, 'status', '--json');
      assert.deepEqual([status.exitCode, jsonOf(status)['health']], [0, 'ok']);
      const pull = await host.writUnder(unprivileged, 'pull', '--json');
      assert.deepEqual([jsonOf(pull)['code'], pull.exitCode], ['AGENT_UNREACHABLE', 1]);
      agent.child.kill('SIGKILL');
      await agent.ended;
      const gone = jsonOf(await host.writUnder(unprivileged, 'health', '--json'));
      const codes = (gone['findings'] as { code: string }[]).map(({ code }) => code);
      assert.deepEqual([gone['exitCode'], gone['source'], codes], [1, 'file', ['AGENT_UNREACHABLE']]);
    },
  );
});

describe('writ health of a host whose agent ended', longCase, () => {
  /** @returns exit code and outcome for root, with an intact ledger and a status.json of this agent state and age */
  const healthAfterEnd = async (
    agent: StatusReport['agent'],
    ageMs: number,
    damage?: (host: InstalledHost) => void,
  ) => {
    using host = await installHost();
    const file = host.dir.join('run/status.json');
    const known = JSON.parse(readFileSync(file, 'utf8')) as StatusReport;
    writeFileSync(file, JSON.stringify({ ...known, agent, atMs: Date.now() - ageMs }));
    damage?.(host);
    const run = await host.writ('health', '--json');
    return [run.exitCode, jsonOf(run)['outcome']];
  };

  it('is unknown three minutes after a crash, and a warning before that and after an orderly end', async () => {
    assert.deepEqual(await healthAfterEnd('run', 181_000), [3, 'unknown']);
    assert.deepEqual(await healthAfterEnd('run', 60_000), [1, 'warning']);
    assert.deepEqual(await healthAfterEnd('stop', 3_600_000), [1, 'warning']);
  });

  it('is critical when the state directory shows a critical problem', async () => {
    const removeCurrent = (host: InstalledHost) => rmSync(host.paths.current);
    assert.deepEqual(await healthAfterEnd('run', 181_000, removeCurrent), [2, 'critical']);
  });
});

// `writ health` as a monitor runs it: with an agent, with one that is gone, and with a host that nobody can ask.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import type { StatusReport } from '../../../../src/core/protocol/control-protocol.js';
import { installHost } from '../../../kit/agent/installed-host.js';
import { problem } from '../../../kit/cli/cycle-results.js';
import { fakeAgent } from '../../../kit/cli/fake-agent.js';
import { runWrit, type WritRun } from '../../../kit/cli/run-writ.js';
import { statusReport } from '../../../kit/cli/status-reports.js';
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
  it('is one line and 0, 1 or 2', async () => {
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

  it('fails at critical alone for a container', async () => {
    assert.equal((await health(stale, '--fail-on', 'critical')).exitCode, 0);
    assert.equal((await health(untrusted, '--fail-on', 'critical')).exitCode, 2);
  });

  it('tells a program every finding with its level and code', async () => {
    const run = await health(untrusted, '--json');
    const { type, outcome, findings } = JSON.parse(run.stdout) as Record<string, unknown>;
    assert.deepEqual([type, outcome], ['health.result', 'critical']);
    assert.deepEqual(findings, [
      { level: 'critical', code: 'UNTRUSTED_ACTIVE', text: 'access 9 is active and foreign' },
    ]);
  });

  it('judges a host without an agent by what lies on disk, and says that none runs', async () => {
    using host = await installHost();
    const run = await host.writ('health');
    assert.equal(run.exitCode, 1, run.stdout);
    assert.match(run.stdout, /^WARNING {2}no agent runs, nothing is pulled by itself \[NO_AGENT\] /);
  });

  it('is critical when nobody can say how the host is', async () => {
    using dir = tempDir();
    const config = dir.join('agent.yaml');
    const run = await runWrit(['health', '--config', config]);
    assert.equal(run.exitCode, 2);
    assert.match(run.stdout, /^CRITICAL .*\[CONFIG_UNREADABLE\]/);
    assert.equal((await runWrit(['health', '--config', config, '--fail-on', 'critical'])).exitCode, 2);
  });
});

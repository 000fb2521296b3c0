import assert from 'node:assert/strict';
import { chmodSync, rmSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { showFindings } from '../../../../src/cli/show/show-doctor.js';
import type { DoctorFinding } from '../../../../src/core/status/doctor.js';
import { copyHost, type InstalledHost, installHost } from '../../../kit/agent/installed-host.js';
import { longCase } from '../../../kit/assert/long-case.js';
import { until } from '../../../kit/assert/until.js';
import { jsonOf } from '../../../kit/cli/run-writ.js';
import { startWrit } from '../../../kit/cli/writ-process.js';
import { joinAs } from '../../../kit/workers/raw-worker.js';

describe('the findings of writ doctor', () => {
  it('are one aligned line each, with the next command, and a count', () => {
    const findings: DoctorFinding[] = [
      { check: 'configuration', state: 'ok', text: '/etc/writ/agent.yaml: no mistake' },
      { check: 'clock', state: 'warn', text: '4.1 s behind the server', next: 'timedatectl set-ntp true' },
      { check: 'sandbox', state: 'FAIL', text: 'bwrap not found', next: 'apt-get install bubblewrap' },
    ];
    assert.deepEqual(showFindings(findings), [
      '  ok    configuration  /etc/writ/agent.yaml: no mistake',
      '  warn  clock          4.1 s behind the server    Next: timedatectl set-ntp true',
      '  FAIL  sandbox        bwrap not found    Next: apt-get install bubblewrap',
      '1 failure, 1 warning',
    ]);
    assert.equal(showFindings(findings.slice(0, 1)).at(-1), 'All is well');
  });
});

describe('writ doctor', () => {
  let installed: InstalledHost;
  before(async () => {
    installed = await installHost();
  });
  after(() => installed[Symbol.dispose]());

  it('exits 0 on a host without findings while its agent runs', longCase, async () => {
    using host = copyHost(installed);
    await using agent = startWrit(['agent', '--config', host.config]);
    await agent.waitForStderr(/"state":"run"/);
    const run = await host.writ('doctor');
    assert.equal(run.exitCode, 0, run.stdout);
    assert.match(run.stdout, /^ {2}ok {4}agent {10}answers on .*, state run$/m);
    assert.match(run.stdout, /All is well\n$/);
  });

  it('reports a connected worker as confirmed from the agent, and fails after it disconnects', async () => {
    using host = copyHost(installed);
    host.configure({ workers: [{ name: 'app', uses: ['dns-edge'], reset: { native: 'app' } }] });
    await using agent = startWrit(['agent', '--config', host.config]);
    await agent.waitForStderr(/"state":"run"/);
    const worker = await joinAs(host.dir.join('run/workers/app.sock'), 'web');
    const { id, generation } = JSON.parse(await worker.line()) as { id: number; generation: number };
    worker.send({ type: 'ack', id, generation });
    const status = async () => jsonOf(await host.writ('status', '--json'));
    await until(async () => (await status())['confirmed'] === true);
    const workersOf = async () => {
      const findings = jsonOf(await host.writ('doctor', '--json'))['findings'] as DoctorFinding[];
      return findings.filter(({ check }) => check === 'workers').map(({ state, text }) => `${state} ${text}`);
    };
    assert.deepEqual(await workersOf(), ['ok app: 1 worker, 1 confirmed what is active']);
    worker.end();
    await until(async () => (await workersOf())[0]?.startsWith('FAIL') === true);
  });

  it('exits 1 for a warning, and prints one JSON object with --json', async () => {
    using host = copyHost(installed);
    const run = await host.writ('doctor', '--json');
    const { type, outcome, exitCode, warnings, findings } = jsonOf(run);
    assert.deepEqual(
      [run.exitCode, type, outcome, exitCode, warnings],
      [1, 'doctor.result', 'warning', 1, 1],
    );
    const agent = (findings as DoctorFinding[]).find(({ check }) => check === 'agent');
    assert.deepEqual([agent?.state, agent?.next], ['warn', `writ agent --config ${host.config}`]);
  });

  it('exits 2 for a failure, also without a configuration', longCase, async () => {
    using host = copyHost(installed);
    host.configure({ root: '' });
    const run = await host.writ('doctor');
    assert.equal(run.exitCode, 2);
    const [first = ''] = run.stdout.split('\n');
    assert.match(first, /^ {2}FAIL {2}configuration/);
    assert.ok(first.endsWith(`    Next: writ config check --config ${host.config}`), first);
    const absent = await host.writ('doctor', '--json', '--config', host.dir.join('nowhere.yaml'));
    assert.equal(absent.exitCode, 2);
  });

  const asRoot = process.getuid?.() === 0 ? {} : { skip: 'only root can become another user' };
  it('names the command with sudo for a user without the right to read the state', {
    ...asRoot,
    ...longCase,
  }, async () => {
    using host = copyHost(installed);
    chmodSync(host.dir.path, 0o755);
    rmSync(host.dir.join('run/status.json'));
    const unprivileged = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'];
    const run = await host.writUnder(unprivileged, 'doctor', '--json');
    const findings = jsonOf(run)['findings'] as DoctorFinding[];
    const next = (check: string) => findings.find((one) => one.check === check)?.next;
    assert.deepEqual(
      [run.exitCode, next('state'), next('trust')],
      [1, ...Array(2).fill(`sudo writ doctor --config ${host.config}`)],
    );
  });
});

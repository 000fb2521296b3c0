// Releases that require a feature that the Writ of a host does not know: the host defers them until an upgrade, activates no other
// release instead, and records no refusal. Once on a host in this process, and once with real programs of two versions.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { statusReport } from '../../../src/agent/report/status-report.js';
import type { Host } from '../../../src/agent/state/host.js';
import { judgeHostHealth } from '../../../src/core/status/host-health.js';
import { cycleOn } from '../../kit/agent/cycle-on.js';
import { writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { standingPolicy } from '../../kit/assert/standing-policy.js';
import { until } from '../../kit/assert/until.js';
import { jsonOf } from '../../kit/cli/run-writ.js';
import { runWritProcess, startWrit } from '../../kit/cli/writ-process.js';
import { writProgram } from '../../kit/cli/writ-program.js';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { findDamage as lookForDamage } from '../../kit/host/repair-bench.js';
import { testHost } from '../../kit/host/test-host.js';

const known = ['waves-1'];
const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });
const reportOf = (host: Host) =>
  statusReport(host, { version: '0.1.0', state: 'run', contact: { contact: {} }, problems: [] });

describe('a release that requires an unknown feature', () => {
  it('is deferred at each pull and by force, without a download and without a refusal', async () => {
    const asked: string[] = [];
    using test = testHost({
      source: (source) => ({
        ...source,
        fetch: (path, options) => {
          asked.push(path);
          return source.fetch(path, options);
        },
      }),
    });
    await test.publish('access', zone(1), { serial: 1 });
    await test.pull();
    await test.publish('access', zone(2), { serial: 2, requires: known });
    const assertUnchanged = standingPolicy(test.host.paths);
    asked.length = 0;
    for (const force of ['no', 'no', 'yes'] as const) {
      const { outcome, exitCode, problems } = await test.pull({ force });
      assert.deepEqual([outcome, exitCode], ['deferred', 8]);
      assert.deepEqual(problems[0]?.facts['unknown'], known);
    }
    assertUnchanged();
    assert.deepEqual(
      asked.filter((path) => path.startsWith('targets/')),
      [],
    );
    assert.deepEqual(test.host.refusals.read().refusals, []);
    assert.equal(test.host.ledger.read().waiting, undefined);
  });

  it('is a warning of health while it is offered, also without a cycle', async () => {
    using test = testHost();
    await test.publish('access', zone(1), { serial: 1 });
    await test.pull();
    await test.publish('access', zone(2), { serial: 2, requires: known });
    const last = await test.pull();
    const report = reportOf(test.host);
    assert.deepEqual(report.bundles[0]?.server, { serial: 2, revision: 'test', requires: known });
    const { level, findings } = judgeHostHealth(report);
    assert.deepEqual([level, findings.map(({ code }) => code)], ['warning', ['REQUIRES_UNKNOWN']]);
    assert.match(findings[0]?.text ?? '', /^access 2 requires waves-1/);
    // The last cycle deferred it; a Writ that knows the feature reports no problem at once.
    const upgraded = test.reopen({ features: known });
    const facts = { version: '0.2.0', state: 'run', contact: { contact: {} }, problems: [] } as const;
    assert.deepEqual(statusReport(upgraded, { ...facts, last }).problems, []);
  });

  it('is activated after the upgrade, and stays active under an older Writ', async () => {
    using test = testHost();
    await test.publish('access', zone(1), { serial: 1 });
    await test.pull();
    await test.publish('access', zone(2), { serial: 2, requires: known });
    assert.equal((await test.pull()).outcome, 'deferred');
    assert.equal((await cycleOn(test.reopen({ features: known }))).outcome, 'activated');
    assert.equal(test.read('access/block.rpz'), 'version 2\n');
    assert.equal((await test.pull()).outcome, 'unchanged');
    assert.deepEqual(reportOf(test.host).problems, []);
    assert.equal((await test.pull({ force: 'yes' })).outcome, 'deferred');
    assert.equal(test.read('access/block.rpz'), 'version 2\n');
  });

  it('is deferred on a host without policy too, which stays without policy', async () => {
    using test = testHost();
    await test.publish('access', zone(2), { serial: 2, requires: known });
    const result = await test.pull();
    assert.deepEqual([result.outcome, result.generation], ['deferred', undefined]);
    assert.equal(fs.existsSync(test.host.paths.current), false);
  });

  it('is no problem any more once it is withdrawn', async () => {
    using test = testHost();
    await test.publish('access', zone(1), { serial: 1 });
    await test.pull();
    await test.publish('access', zone(2), { serial: 2, requires: known });
    await test.pull();
    await test.publish('access', zone(1), { serial: 1, withdrawn: [2] });
    assert.deepEqual([(await test.pull()).outcome, reportOf(test.host).problems], ['unchanged', []]);
  });

  it('is refused as a rollback of the serial first when its serial is older', async () => {
    using test = testHost();
    await test.publish('access', zone(2), { serial: 2 });
    await test.pull();
    await test.publish('access', zone(1), { serial: 1, requires: known });
    assert.deepEqual((await test.pull()).problems[0]?.code, 'SERIAL_ROLLBACK');
  });

  it('defers its set, and no other bundle', async () => {
    using test = testHost({
      bundles: [{ name: 'access' }, { name: 'views' }, { name: 'zones' }],
      config: { together: [['access', 'views']] },
    });
    for (const name of ['access', 'views', 'zones']) await test.publish(name, zone(1), { serial: 1 });
    await test.pull();
    await test.publish('access', zone(2), { serial: 2 });
    await test.publish('views', zone(2), { serial: 2, requires: known });
    await test.publish('zones', zone(2), { serial: 2 });
    const { exitCode, bundles } = await test.pull();
    assert.equal(exitCode, 8);
    assert.deepEqual(
      bundles.map((one) => [one.bundle, one.outcome, one.problem?.code]),
      [
        ['access', 'deferred', 'REQUIRES_UNKNOWN'],
        ['views', 'deferred', 'REQUIRES_UNKNOWN'],
        ['zones', 'activated', undefined],
      ],
    );
    assert.deepEqual(
      ['access', 'views', 'zones'].map((name) => test.read(`${name}/block.rpz`)),
      ['version 1\n', 'version 1\n', 'version 2\n'],
    );
  });

  it('has an intact retained copy, also with a record of a Writ without required features', async () => {
    using test = testHost({ features: known });
    await test.publish('access', zone(1), { serial: 1, requires: known });
    await test.pull();
    assert.deepEqual(await lookForDamage(test.host), []);
    const [release = ''] = fs.readdirSync(join(test.host.paths.archives, 'access'));
    const path = join(test.host.paths.archives, 'access', release, 'record.json');
    const record = fs.readFileSync(path, 'utf8');
    assert.ok(record.includes('"requires":["waves-1"]'), record);
    fs.writeFileSync(path, record.replace('"requires":["waves-1"]', '"notes":[]'));
    assert.deepEqual(await lookForDamage(test.host), []);
    fs.writeFileSync(path, record.replace('"serial":1', '"serial":2'));
    assert.deepEqual((await lookForDamage(test.host)).length, 1);
  });

  it('is activated by its delta when the host knows the feature', async () => {
    using test = testHost({ deltas: {}, features: known });
    await test.publish('access', { ...zone(1), rest: 'x'.repeat(50_000) }, { serial: 1 });
    await test.pull();
    await test.publish('access', { ...zone(2), rest: 'x'.repeat(50_000) }, { serial: 2, requires: known });
    assert.equal((await test.pull()).outcome, 'activated');
    assert.equal(test.read('access/block.rpz'), 'version 2\n');
  });
});

/** The program of a later version: only its list of known features differs. @returns its entry */
function laterWrit(dir: TempDir): string {
  const directory = dir.join('later');
  fs.cpSync(join(writProgram, '..'), directory, { recursive: true });
  // The other files of a package.
  const root = join(writProgram, '../../..');
  fs.cpSync(join(root, 'package.json'), dir.join('package.json'));
  fs.symlinkSync(join(root, 'node_modules'), dir.join('node_modules'));
  let changed = 0;
  for (const name of fs.readdirSync(directory).filter((one) => one.endsWith('.js'))) {
    const path = join(directory, name);
    const text = fs.readFileSync(path, 'utf8');
    const next = text.replace(/\bknownFeatures ?= ?\[\]/, `knownFeatures=${JSON.stringify(known)}`);
    if (next === text) continue;
    changed += 1;
    fs.writeFileSync(path, next);
  }
  assert.equal(changed, 1);
  return join(directory, 'main.js');
}

const codesOf = (json: Record<string, unknown>, list: string): string[] =>
  (json[list] as { code: string }[]).map(({ code }) => code);

describe('a host with a Writ that is too old for a release', longCase, () => {
  it('reports it by every command, with an agent and without, until the upgrade', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off' });
    const active = (): string =>
      fs.readFileSync(join(site.state, 'policy/current/dns-edge/block.rpz'), 'utf8');
    const run = (...args: string[]) => runWritProcess([...args, '--config', site.config]);
    await site.repository.publish(zone(1));
    assert.equal((await run('pull')).exitCode, 0);
    await site.repository.publish(zone(2), { requires: known });

    const standalone = await run('pull');
    assert.equal(standalone.exitCode, 8, standalone.stderr);
    assert.match(
      standalone.stdout,
      /^DEFERRED {2}dns-edge 2 \[REQUIRES_UNKNOWN\]\n {2}dns-edge 2 requires waves-1/,
    );
    assert.match(standalone.stdout, /hint: Upgrade Writ on this host/);
    {
      await using agent = await site.agent();
      await until(async () => codesOf(await site.json('status'), 'problems').includes('REQUIRES_UNKNOWN'));
      const pull = jsonOf(await run('pull', '--json'));
      assert.deepEqual([pull['exitCode'], pull['code']], [8, 'REQUIRES_UNKNOWN']);
      const health = await run('health', '--json');
      assert.deepEqual(
        [jsonOf(health)['outcome'], codesOf(jsonOf(health), 'findings')],
        ['warning', ['REQUIRES_UNKNOWN']],
      );
      assert.match((await run('status')).stdout, / 2, deferred\n/);
      assert.equal((await run('refusals', '--json')).stdout.includes('"outcome":"empty"'), true);
      assert.equal(agent.child.exitCode, null);
    }
    assert.equal(active(), 'version 1\n');

    await using upgraded = startWrit(['agent', '--config', site.config], {}, { entry: laterWrit(dir) });
    await upgraded.waitForStderr(/"state":"run"/);
    // Before any cycle: the reason of the deferral no longer holds.
    assert.deepEqual(codesOf(await site.json('status'), 'problems'), []);
    assert.equal((await run('pull')).exitCode, 0);
    assert.equal(active(), 'version 2\n');
    assert.equal(upgraded.child.exitCode, null);
  });

  it('activates the release by the first pull of the new program, without an agent', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off' });
    await site.repository.publish(zone(1), { requires: known });
    const run = (entry: string) => runWritProcess(['pull', '--config', site.config, '--json'], { entry });
    assert.deepEqual(jsonOf(await run(writProgram))['code'], 'REQUIRES_UNKNOWN');
    const taken = await run(laterWrit(dir));
    assert.equal(taken.exitCode, 0, taken.stdout);
  });
});

// `writ pull` and `writ rollback` on a host without an agent report once, and the report does not change their result.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { writSite } from '../../kit/agent/writ-site.js';
import { longCase } from '../../kit/assert/long-case.js';
import { runWritProcess, startWrit } from '../../kit/cli/writ-process.js';
import { heldTimer } from '../../kit/clock/held-timer.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { type FleetStandIn, fleetStandIn } from '../../kit/net/fleet-server.js';
import { loadedSources, tracingEnv } from '../../kit/sources/loaded-sources.js';

const zone = (version: number) => ({ 'block.rpz': `version ${version}\n` });

function hostIn(dir: ReturnType<typeof tempDir>, { url }: Pick<FleetStandIn, 'url'>) {
  fs.writeFileSync(dir.join('token'), 'writ_host_good');
  return writSite(dir, { sandbox: 'off', fleet: { url, tokenFile: dir.join('token') } });
}

describe('a pull without an agent', longCase, () => {
  it('reports its outcome and the state of the host', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = hostIn(dir, fleet);
    await site.repository.publish(zone(1));
    const run = await site.writ('pull');
    assert.equal(run.exitCode, 0, run.stderr);
    const [report] = fleet.stored();
    assert.equal(report?.bundles[0]?.active?.serial, 1);
    assert.equal(report?.outcomes[0]?.outcome, 'activated');
    assert.equal(report?.agent, 'pull');
    await site.writ('pull');
    assert.equal(fleet.stored().length, 2);
    assert.deepEqual(fleet.stored()[1]?.outcomes, []);
    assert.equal(fleet.enrolments.length, 1);
  });

  it('reports, and so does a rollback, with the release that the host runs now', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = hostIn(dir, fleet);
    for (const version of [1, 2]) {
      await site.repository.publish(zone(version));
      await site.writ('pull');
    }
    assert.equal((await site.writ('rollback', '--generation', '7')).exitCode, 2);
    assert.equal(fleet.stored().length, 2, 'a usage error sends no report');
    assert.equal((await site.writ('rollback')).exitCode, 0);
    const last = fleet.stored().at(-1);
    assert.deepEqual([fleet.stored().length, last?.bundles[0]?.active?.serial], [3, 1]);
    assert.equal(last?.outcomes[0]?.trigger, 'rollback');
    fleet.bend = (request) => void request.socket.destroy();
    await site.repository.publish(zone(3));
    await site.writ('pull');
    const unreported = await site.writ('rollback');
    assert.equal(unreported.exitCode, 0);
    assert.match(unreported.stderr, /FLEET_UNREACHABLE/);
  });

  it('warns on stderr when its report failed, and exits as before', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    fleet.bend = (request) => void request.socket.destroy();
    const site = hostIn(dir, fleet);
    await site.repository.publish(zone(1));
    const run = await site.writ('pull');
    assert.equal(run.exitCode, 0);
    assert.match(run.stderr, /FLEET_UNREACHABLE/);
    assert.doesNotMatch(run.stdout, /FLEET_/);
    const { warnings, outcome } = await site.json('pull');
    assert.equal(outcome, 'unchanged');
    assert.deepEqual(
      (warnings as { code: string }[]).map(({ code }) => code),
      ['FLEET_UNREACHABLE'],
    );
    fleet.bend = undefined;
    await site.writ('pull');
    assert.equal(fleet.stored()[0]?.outcomes[0]?.outcome, 'activated');
  });

  it('waits at most five seconds for a silent server', async (t) => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const fiveSeconds = heldTimer(t, 5000);
    const silences: Promise<void>[] = [];
    fleet.bend = () => void silences.push(fiveSeconds.fire());
    const site = hostIn(dir, fleet);
    await site.repository.publish(zone(1));
    const run = await site.writ('pull');
    assert.equal(run.exitCode, 0);
    assert.match(run.stderr, /FLEET_UNREACHABLE/);
    assert.ok(silences.length > 0);
    await Promise.all(silences);
  });
});

describe('a host without a fleet', longCase, () => {
  it('loads no code of reports, and stores no state for it', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off' });
    await site.repository.publish(zone(1));
    const trace = dir.join('imports');
    const run = await runWritProcess(['pull', '--config', site.config], { env: tracingEnv(trace) });
    assert.equal(run.exitCode, 0, run.stderr);
    const { sources, whole } = loadedSources(trace);
    const ofFleet = sources.filter((path) => /agent\/fleet\//.test(path));
    assert.deepEqual(
      ofFleet.filter((path) => !/\/(?:identity|fleet-door)\.ts$/.test(path)),
      [],
    );
    assert.ok(!whole.includes('http-message-signatures'));
    assert.equal(fs.existsSync(`${site.state}/fleet`), false);
  });

  it('loads no code of reports in its agent', async () => {
    using dir = tempDir();
    const site = writSite(dir, { sandbox: 'off' });
    await site.repository.publish(zone(1));
    const trace = dir.join('imports');
    const agent = startWrit(['agent', '--config', site.config], tracingEnv(trace));
    await agent.waitForStderr(/"state":"run"/);
    agent.child.kill('SIGTERM');
    await agent.ended;
    const { sources, whole } = loadedSources(trace);
    assert.ok(sources.includes('src/agent/fleet/lazy-reporter.ts'));
    for (const name of ['reporter', 'send-report', 'make-report', 'host-state'])
      assert.ok(!sources.includes(`src/agent/fleet/${name}.ts`), name);
    assert.ok(!whole.includes('http-message-signatures'));
  });
});

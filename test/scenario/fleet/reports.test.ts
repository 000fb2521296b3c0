// A real agent and its fleet server: content and times of reports, which do not change a cycle.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { zone } from '../../kit/agent/agent-with-release.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { fleetStandIn } from '../../kit/net/fleet-server.js';
import { fleetSite } from '../../kit/net/fleet-site.js';

const minuteMs = 60_000;

describe('a host with a fleet', () => {
  it('enrols once, and sends a signed report of its releases at once', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.untilSo(() => fleet.stored().some(({ outcomes }) => outcomes.length === 1));
    const report = fleet.stored().at(-1);
    assert.equal(report?.host, 'edge-1');
    assert.deepEqual(report?.labels, { site: 'fra' });
    const { active, ...bundle } = report?.bundles[0] ?? assert.fail('no bundle');
    assert.deepEqual(bundle, { bundle: 'dns-edge', channel: 'stable' });
    assert.equal(active?.serial, 1);
    assert.equal(active?.state, 'notified');
    assert.match(active?.manifest ?? '', /^[0-9a-f]{64}$/);
    assert.match(report?.root?.sha256 ?? '', /^[0-9a-f]{64}$/);
    assert.deepEqual(report?.outcomes.at(-1)?.bundles, [
      { bundle: 'dns-edge', channel: 'stable', serial: 1 },
    ]);
    assert.deepEqual(fleet.unproven, []);
    assert.equal(fleet.enrolments.length, 1);
    const { fleet: reporting, problems } = await agent.status();
    assert.equal(reporting?.state, 'reporting');
    assert.deepEqual(problems, []);
  });

  it(
    'reports a change within seconds, and otherwise at its phase of the granted interval',
    longCase,
    async () => {
      using dir = tempDir();
      await using fleet = await fleetStandIn();
      fleet.grantsMs = 20 * minuteMs;
      const site = fleetSite(dir, fleet);
      await site.repository.publish(zone(1));
      await using agent = site.start();
      await agent.hasEnded(1);
      await site.untilSo(() => fleet.stored().some(({ outcomes }) => outcomes.length === 1));
      await site.untilSo(() => fleet.stored().at(-1)?.outcomes.length === 0);
      const before = fleet.stored().length;
      const lastMs = site.clock.nowMs();
      await site.untilSo(() => fleet.stored().length > before, 10_000);
      const keepalive = fleet.stored().at(-1);
      assert.ok((keepalive?.atMs ?? 0) - lastMs <= 20 * minuteMs);
      assert.equal(keepalive?.everyMs, 20 * minuteMs);
      const again = fleet.stored().length;
      await site.untilSo(() => fleet.stored().length > again, 10_000);
      assert.equal((fleet.stored().at(-1)?.atMs ?? 0) - (keepalive?.atMs ?? 0), 20 * minuteMs);
      await site.repository.publish(zone(2));
      const changedMs = site.clock.nowMs();
      await agent.pull();
      await site.untilSo(() => fleet.stored().at(-1)?.bundles[0]?.active?.serial === 2);
      assert.ok((fleet.stored().at(-1)?.atMs ?? 0) - changedMs < 10_000);
    },
  );

  it(
    'updates during six hours without its server, and reports the outcomes afterwards',
    longCase,
    async () => {
      using dir = tempDir();
      await using fleet = await fleetStandIn();
      const site = fleetSite(dir, fleet);
      await site.repository.publish(zone(1));
      await using agent = site.start();
      await agent.hasEnded(1);
      await site.untilSo(() => fleet.stored().some(({ outcomes }) => outcomes.length === 1));
      fleet.bend = (request) => request.socket.destroy();
      const askedBefore = fleet.asked();
      for (const version of [2, 3, 4]) {
        await site.repository.publish(zone(version));
        const { outcome, exitCode } = await agent.pull();
        assert.deepEqual({ outcome, exitCode }, { outcome: 'activated', exitCode: 0 });
        const untilMs = site.clock.nowMs() + 2 * 60 * minuteMs;
        await site.untilSo(() => site.clock.nowMs() >= untilMs, 10 * minuteMs);
      }
      const { fleet: reporting, problems } = await agent.status();
      assert.equal(reporting?.problem?.code, 'FLEET_UNREACHABLE');
      assert.deepEqual(
        problems.map(({ code }) => code),
        ['FLEET_UNREACHABLE'],
      );
      // At most its phase of each interval, and one quick retry.
      assert.ok(fleet.asked() - askedBefore < (6 * 60) / 5, String(fleet.asked() - askedBefore));
      fleet.bend = undefined;
      await site.untilSo(() => fleet.stored().at(-1)?.bundles[0]?.active?.serial === 4, minuteMs);
      const merged = fleet.stored().flatMap(({ outcomes }) => outcomes);
      assert.deepEqual([...new Set(merged.map(({ bundles }) => bundles[0]?.serial))], [1, 2, 3, 4]);
      await site.untilSo(() => fleet.stored().at(-1)?.outcomes.length === 0);
      assert.deepEqual((await agent.status()).problems, []);
    },
  );

  it(
    'continues after a higher counter once, by the nonce, and reports then that another machine has its key',
    longCase,
    async () => {
      using dir = tempDir();
      await using fleet = await fleetStandIn();
      const site = fleetSite(dir, fleet);
      await site.repository.publish(zone(1));
      await using agent = site.start();
      await agent.hasEnded(1);
      await site.untilSo(() => fleet.stored().some(({ outcomes }) => outcomes.length === 1));
      const [keyId = ''] = fleet.counters.keys();
      fleet.counters.set(keyId, 10_000);
      await site.repository.publish(zone(2));
      await agent.pull();
      await site.untilSo(() => fleet.stored().at(-1)?.bundles[0]?.active?.serial === 2);
      const answered = fleet.reports.find(({ nonce }) => nonce !== undefined);
      assert.equal(answered?.counter, 10_001);
      assert.equal(answered?.status, 200);
      fleet.bend = (_, response) =>
        response.writeHead(409).end(JSON.stringify({ counter: 20_000, nonce: 'n' }));
      await site.repository.publish(zone(3));
      const asked = fleet.asked();
      assert.equal((await agent.pull()).outcome, 'activated');
      await site.untilSo(() => fleet.asked() >= asked + 2);
      await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0);
      assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_COUNTER');
      assert.equal(fleet.asked(), asked + 2);
    },
  );

  it(
    'keeps its key, its counter and its outcomes over a restart, and does not read its token again',
    longCase,
    async () => {
      using dir = tempDir();
      await using fleet = await fleetStandIn();
      const site = fleetSite(dir, fleet);
      await site.repository.publish(zone(1));
      {
        await using agent = site.start();
        await agent.hasEnded(1);
        await site.untilSo(() => fleet.stored().some(({ outcomes }) => outcomes.length === 1));
        fleet.bend = (request) => request.socket.destroy();
        await site.repository.publish(zone(2));
        await agent.pull();
      }
      fs.rmSync(site.tokenFile);
      fleet.bend = undefined;
      const { counter = 0 } = fleet.reports.at(-1) ?? {};
      const before = fleet.reports.length;
      await using agent = site.start();
      await agent.ready;
      await site.untilSo(() => fleet.stored().length > 1 && fleet.reports.length > before);
      const first = fleet.reports[before];
      assert.equal(first?.status, 200);
      assert.ok((first?.counter ?? 0) > counter);
      assert.equal(first?.report.outcomes.at(-1)?.bundles[0]?.serial, 2);
      assert.equal(fleet.enrolments.length, 1);
      assert.equal(fs.statSync(`${site.paths.fleet}/key.json`).mode & 0o777, 0o600);
    },
  );

  it('reports the end of its agent without a delay', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.untilSo(() => fleet.stored().at(-1)?.agent === 'run');
    agent.stop();
    await agent.ended;
    assert.equal(fleet.stored().at(-1)?.agent, 'stop');
  });

  it('asks for its approval at its phase, and reports the wait as a problem', longCase, async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    fleet.approves = 'later';
    const site = fleetSite(dir, fleet);
    await using agent = site.start();
    await agent.ready;
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0);
    const { fleet: reporting, problems } = await agent.status();
    assert.equal(reporting?.state, 'waiting');
    assert.ok(problems.some(({ code }) => code === 'FLEET_KEY_WAITING'));
    const asked = fleet.asked();
    await site.untilSo(() => fleet.asked() > asked, 10_000);
    fleet.approveAll();
    await site.untilSo(() => fleet.stored().length > 0, 10_000);
    assert.equal(fleet.stored()[0]?.host, 'edge-1');
  });

  it('starts and stops its reports by a reload, without a restart', longCase, async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    const { url } = fleet;
    site.configure({ fleet: undefined });
    await using agent = site.start();
    await agent.ready;
    assert.equal((await agent.status()).fleet, undefined);
    assert.equal(fs.existsSync(site.paths.fleet), false);
    site.configure({ fleet: { url, tokenFile: site.tokenFile, every: '1m' } });
    agent.reload();
    await site.untilSo(() => fleet.stored().length > 0);
    site.configure({ fleet: undefined });
    agent.reload();
    await site.untilSo(() => agent.log.named('configuration reloaded').length === 2);
    assert.equal((await agent.status()).fleet, undefined);
    const asked = fleet.asked();
    await site.clock.advance(10 * minuteMs);
    assert.equal(fleet.asked(), asked);
  });
});

// Machines that were copied with the state of another one: each gets a key of its own, or its counter shows the copy.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { zone } from '../../kit/agent/agent-with-release.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { fleetStandIn } from '../../kit/net/fleet-server.js';
import { fleetSite } from '../../kit/net/fleet-site.js';

describe('a copy of a machine', longCase, () => {
  it('with other machine marks enrols with a key of its own', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    await site.repository.publish(zone(1));
    {
      await using agent = site.start();
      await agent.hasEnded(1);
      await site.untilSo(() => fleet.stored().some(({ outcomes }) => outcomes.length > 0));
    }
    const before = fleet.reports.length;
    // The marks of the machine differ: the agent creates another install id.
    fs.rmSync(site.paths.installId);
    await using agent = site.start({ newId: () => 'c10e'.repeat(8), readMarks: () => ({}) });
    await agent.ready;
    await site.untilSo(() => fleet.reports.length > before);
    assert.equal(fleet.enrolments.length, 2);
    const [first, second] = fleet.enrolments;
    assert.notEqual(first?.publicKey, second?.publicKey);
    assert.notEqual(first?.installId, second?.installId);
    assert.deepEqual(fleet.reports.at(-1)?.report.outcomes, []);
  });

  it('restored to an older state continues after the former counter and outcomes', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    await site.repository.publish(zone(1));
    {
      await using agent = site.start();
      await agent.hasEnded(1);
      await site.untilSo(() => fleet.stored().some(({ outcomes }) => outcomes.length > 0));
    }
    fs.cpSync(site.paths.fleet, dir.join('snapshot'), { recursive: true });
    await site.repository.publish(zone(2));
    for (const _ of [1, 2]) {
      await using agent = site.start();
      await agent.ready;
      const before = fleet.stored().length;
      await agent.pull();
      await site.untilSo(() => fleet.stored().length > before);
    }
    const last = Math.max(...fleet.reports.map(({ counter }) => counter));
    fs.rmSync(site.paths.fleet, { recursive: true });
    fs.cpSync(dir.join('snapshot'), site.paths.fleet, { recursive: true });
    fs.rmSync(`${site.paths.fleet}/counter.json`);
    await using agent = site.start();
    await agent.ready;
    await site.untilSo(() => fleet.reports.some(({ nonce }) => nonce !== undefined));
    const answer = fleet.reports.find(({ nonce }) => nonce !== undefined);
    assert.deepEqual([answer?.counter, answer?.status], [last + 1, 200]);
    await site.repository.publish(zone(3));
    await agent.pull();
    await site.untilSo(() =>
      fleet.stored().some(({ outcomes }) => outcomes.some(({ bundles }) => bundles[0]?.serial === 3)),
    );
    assert.equal(fleet.enrolments.length, 1);
  });
});

describe('a fleet with another address', longCase, () => {
  it('needs no enrolment when it is the same fleet, and an enrolment by the token when it is another one', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    await using other = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    const { tokenFile } = site;
    await using agent = site.start();
    await agent.ready;
    await site.untilSo(() => fleet.stored().length > 0);
    fs.renameSync(tokenFile, dir.join('away'));
    site.configure({ fleet: { url: fleet.url.replace('127.0.0.1', 'localhost'), tokenFile, every: '1m' } });
    agent.reload();
    const before = fleet.stored().length;
    await site.untilSo(() => fleet.stored().length > before, 1000);
    assert.equal(fleet.enrolments.length, 1);
    site.configure({ fleet: { url: other.url, tokenFile, every: '1m' } });
    agent.reload();
    // A timeout may be logged before: this test moves the time of requests, too.
    const failedReports = () => JSON.stringify(agent.log.named('the fleet server did not get the report'));
    await site.untilSo(() => failedReports().includes('FLEET_TOKEN_UNREADABLE'), 1000);
    fs.renameSync(dir.join('away'), tokenFile);
    await site.untilSo(() => other.stored().length > 0, 1000);
    assert.equal(other.enrolments[0]?.publicKey, fleet.enrolments[0]?.publicKey);
  });
});

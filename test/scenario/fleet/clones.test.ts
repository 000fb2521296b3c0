// Machines that were copied with the state of another one: each has a key of its own, or shows by its counter.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import { describe, it } from 'node:test';
import { zone } from '../../kit/agent/agent-with-release.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { fleetStandIn } from '../../kit/net/fleet-server.js';
import { fleetSite } from '../../kit/net/fleet-site.js';

describe('a copy of a machine', () => {
  it('that knows itself for another installation enrols with a key of its own', async () => {
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
    // The marks of the machine are other ones: its install id is made anew.
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

  it('that was restored to an older state goes on behind the counter and the outcomes of before', async () => {
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

describe('a fleet that moves', () => {
  it('is the same under another address, and another one is enrolled with by the token', async () => {
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
    // Another one may come before it: where this test moves time, a request may be out of time.
    const said = () => JSON.stringify(agent.log.named('the fleet server did not get the report'));
    await site.untilSo(() => said().includes('FLEET_TOKEN_UNREADABLE'), 1000);
    fs.renameSync(dir.join('away'), tokenFile);
    await site.untilSo(() => other.stored().length > 0, 1000);
    assert.equal(other.enrolments[0]?.publicKey, fleet.enrolments[0]?.publicKey);
  });
});

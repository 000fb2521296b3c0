// What a hostile or broken fleet server can do to a host: nothing but to be called what it is.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { zone } from '../../kit/agent/agent-with-release.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { fleetStandIn } from '../../kit/net/fleet-server.js';
import { fleetSite } from '../../kit/net/fleet-site.js';

type Bend = (request: IncomingMessage, response: ServerResponse) => void;
const says =
  (status: number, body: string, headers: Record<string, string> = {}): Bend =>
  (_, response) =>
    void response.writeHead(status, headers).end(body);

const answers: readonly (readonly [what: string, code: string, bend: Bend])[] = [
  ['a megabyte', 'FLEET_ANSWER', says(200, `{"fleet":"${'x'.repeat(1_000_000)}"}`)],
  ['garbage', 'FLEET_ANSWER', says(200, '<html>')],
  ['another shape', 'FLEET_ANSWER', says(200, '{"fleet":1,"keyId":[],"everyMs":-1,"outcomes":1e99}')],
  [
    'a name that would be two headers',
    'FLEET_ANSWER',
    says(200, '{"fleet":"a\\r\\nx: y","keyId":"k","state":"accepted"}'),
  ],
  ['a redirect', 'FLEET_ANSWER', says(307, '', { location: 'http://127.0.0.1:1/' })],
  ['an error of its own', 'FLEET_UNREACHABLE', says(500, 'oops')],
  ['a refusal', 'FLEET_TOKEN_REFUSED', says(403, '{}')],
  ['a connection that ends', 'FLEET_UNREACHABLE', (request) => void request.socket.destroy()],
  ['that it is busy', 'FLEET_BUSY', says(503, '', { 'retry-after': '999999999' })],
];

describe('a fleet server that answers', () => {
  for (const [what, code, bend] of answers) {
    it(`${what} is ${code}, and policy goes on`, async () => {
      using dir = tempDir();
      await using fleet = await fleetStandIn();
      fleet.bend = bend;
      const site = fleetSite(dir, fleet);
      await site.repository.publish(zone(1));
      await using agent = site.start();
      await agent.hasEnded(1);
      assert.equal(agent.cycles()[0]?.outcome, 'activated');
      await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0);
      assert.equal((await agent.status()).fleet?.problem?.code, code);
    });
  }

  it('never ends an exchange, and the agent stops as ever', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    fleet.bend = (_, response) => void response.writeHead(200).write('{');
    const site = fleetSite(dir, fleet);
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.untilSo(() => fleet.asked() > 0);
    assert.equal((await agent.pull()).outcome, 'unchanged');
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0, 2000);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_UNREACHABLE');
    agent.stop();
    await agent.ended;
  });

  it('never gets a token from a host that has enrolled, whatever it says', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.untilSo(() => fleet.stored().length > 0);
    const asked: (string | undefined)[] = [];
    const refuse = says(401, '{"code":"FLEET_KEY_UNKNOWN"}');
    fleet.bend = (request, response) => {
      asked.push(request.url);
      refuse(request, response);
    };
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0, 10_000);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_KEY_UNKNOWN');
    assert.deepEqual([...new Set(asked)], ['/v1/reports']);
    fleet.bend = says(403, '{}');
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 1, 10_000);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_KEY_RETIRED');
    assert.equal(fleet.enrolments.length, 1);
  });

  it('is reported to as soon as a token is there that it takes', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    fs.rmSync(site.tokenFile);
    await using agent = site.start();
    await agent.ready;
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_TOKEN_UNREADABLE');
    assert.equal(fleet.asked(), 0);
    fs.writeFileSync(
      site.tokenFile,
      'CREATED   1 for hosts\nwrit_host_good\nUndo: writ fleet token revoke 1\n',
    );
    const before = agent.log.named('the fleet server did not get the report').length;
    agent.reload();
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > before);
    assert.match(
      (await agent.status()).fleet?.problem?.message ?? '',
      /it has 3 lines, and a token is one line$/,
    );
    fs.writeFileSync(site.tokenFile, 'writ_host_good');
    await site.untilSo(() => fleet.stored().length > 0, 10_000);
  });
});

describe('a host whose key was retired', () => {
  it('is a host of the fleet again by what the hint says: the directory away, a token, and a start', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    {
      await using agent = site.start();
      await site.untilSo(() => fleet.stored().length > 0);
      fleet.retired.add(fleet.reports[0]?.keyId ?? '');
      agent.reload();
      await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0);
      const { code, hint } = (await agent.status()).fleet?.problem ?? assert.fail();
      assert.equal(code, 'FLEET_KEY_RETIRED');
      const commands = [
        'systemctl stop writ-agent',
        'rm -r /var/lib/writ/fleet',
        'systemctl start writ-agent',
      ];
      assert.deepEqual(
        [...hint.matchAll(/`((?:systemctl|rm) [^`]*)`/g)].map(([, command]) => command),
        commands,
      );
    }
    const stored = fleet.stored().length;
    fs.rmSync(site.paths.fleet, { recursive: true });
    await using again = site.start();
    await again.ready;
    await site.untilSo(() => fleet.stored().length > stored);
    assert.equal(fleet.enrolments.length, 2);
    assert.equal((await again.status()).fleet?.problem, undefined);
  });
});

describe('an authority that is not there', () => {
  it('is said as a matter of certificates', async () => {
    using dir = tempDir();
    const site = fleetSite(dir, { url: 'https://127.0.0.1:9/' }, { ca: dir.join('no-ca.pem') });
    await using agent = site.start();
    await agent.ready;
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_CERTIFICATE');
  });
});

describe('the key of a host', () => {
  it('that is damaged stops its reports, by its code, and nothing else', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    await site.repository.publish(zone(1));
    fs.mkdirSync(site.paths.fleet, { recursive: true });
    fs.writeFileSync(`${site.paths.fleet}/key.json`, '{"writ":1,');
    await using agent = site.start();
    await agent.hasEnded(1);
    assert.equal(agent.cycles()[0]?.outcome, 'activated');
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_STATE_DAMAGED');
    assert.equal(fleet.asked(), 0);
  });
});

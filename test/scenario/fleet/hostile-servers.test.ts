// A hostile or broken fleet server: the host reports its failure by a code, and updates of policy continue.
import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { describe, it } from 'node:test';
import { zone } from '../../kit/agent/agent-with-release.js';
import { longCase } from '../../kit/assert/long-case.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { fleetStandIn } from '../../kit/net/fleet-server.js';
import { fleetSite } from '../../kit/net/fleet-site.js';

type Bend = (request: IncomingMessage, response: ServerResponse) => void;
const responds =
  (status: number, body: string, headers: Record<string, string> = {}): Bend =>
  (_, response) =>
    void response.writeHead(status, headers).end(body);

const answers: readonly (readonly [what: string, code: string, bend: Bend])[] = [
  ['a megabyte', 'FLEET_ANSWER', responds(200, `{"fleet":"${'x'.repeat(1_000_000)}"}`)],
  ['garbage', 'FLEET_ANSWER', responds(200, '<html>')],
  ['another shape', 'FLEET_ANSWER', responds(200, '{"fleet":1,"keyId":[],"everyMs":-1,"outcomes":1e99}')],
  [
    'a name that would be two headers',
    'FLEET_ANSWER',
    responds(200, '{"fleet":"a\\r\\nx: y","keyId":"k","state":"accepted"}'),
  ],
  ['a redirect', 'FLEET_ANSWER', responds(307, '', { location: 'http://127.0.0.1:1/' })],
  ['an error of its own', 'FLEET_UNREACHABLE', responds(500, 'oops')],
  ['a refusal', 'FLEET_TOKEN_REFUSED', responds(403, '{}')],
  ['a connection that ends', 'FLEET_UNREACHABLE', (request) => void request.socket.destroy()],
  ['that it is busy', 'FLEET_BUSY', responds(503, '', { 'retry-after': '999999999' })],
];

describe('a hostile or broken fleet server', () => {
  for (const [what, code, bend] of answers) {
    it(`that answers ${what} causes ${code}, and the host still updates`, async () => {
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

  it('that never ends an answer delays neither a pull nor the stop of the agent', async () => {
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

  it('that refuses a report gets no token from a host that has enrolled', async () => {
    using dir = tempDir();
    await using fleet = await fleetStandIn();
    const site = fleetSite(dir, fleet);
    await site.repository.publish(zone(1));
    await using agent = site.start();
    await agent.hasEnded(1);
    await site.untilSo(() => fleet.stored().length > 0);
    const asked: (string | undefined)[] = [];
    const refuse = responds(401, '{"code":"FLEET_KEY_UNKNOWN"}');
    fleet.bend = (request, response) => {
      asked.push(request.url);
      refuse(request, response);
    };
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0, 10_000);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_KEY_UNKNOWN');
    assert.deepEqual([...new Set(asked)], ['/v1/reports']);
    fleet.bend = responds(403, '{}');
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 1, 10_000);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_KEY_RETIRED');
    assert.equal(fleet.enrolments.length, 1);
  });

  it('gets reports as soon as the token file of the host is valid', longCase, async () => {
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

describe('a host with a retired key', longCase, () => {
  it('enrols again by the steps of the hint: delete the directory, give a token, start', async () => {
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

describe('a missing file of authorities', () => {
  it('is the problem FLEET_CERTIFICATE', async () => {
    using dir = tempDir();
    const site = fleetSite(dir, { url: 'https://127.0.0.1:9/' }, { ca: dir.join('no-ca.pem') });
    await using agent = site.start();
    await agent.ready;
    await site.untilSo(() => agent.log.named('the fleet server did not get the report').length > 0);
    assert.equal((await agent.status()).fleet?.problem?.code, 'FLEET_CERTIFICATE');
  });
});

describe('the key of a host', () => {
  it('stops its reports with FLEET_STATE_DAMAGED when it is damaged, and nothing else', async () => {
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

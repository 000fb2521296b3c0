// Releases that really cut a host off from its repository, applied by a loader in a network namespace: a firewall, a route, a
// resolver and a proxy. The host detects each by itself and rolls back. Time is virtual, the network is real.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it, type TestContext } from 'node:test';
import type { ContactServer } from '../../../src/core/config/config.js';
import { scriptArgv } from '../../kit/cli/child-script.js';
import { tempDir } from '../../kit/disk/temp-dir.js';
import { bakeMs } from '../../kit/host/baking-host.js';
import { type ContactHost, contactHost } from '../../kit/host/contact-host.js';
import {
  fleetPort,
  type NetworkPair,
  needsNetworkPair,
  networkPair,
  serverAddress,
  serverName,
  serverPort,
} from '../../kit/net/network-pair.js';

const second = 1000;
const bake = { forMs: bakeMs, restarts: 2 };
const options = { timeout: 240_000, ...needsNetworkPair };

const byAddress = `http://${serverAddress}:${serverPort}/`;
const byName = `http://${serverName}:${serverPort}/`;
const proxyPort = 3128;
const byFleet = `http://${serverAddress}:${fleetPort}/`;
const byProxy = `http://127.0.0.1:${proxyPort}/`;

const relay = `
import net from 'node:net';
import fs from 'node:fs';
const [, pidFile] = process.argv;
net.createServer((near) => {
  const far = net.connect(${serverPort}, '${serverAddress}');
  for (const one of [near, far]) one.on('error', () => { near.destroy(); far.destroy(); });
  near.pipe(far).pipe(near);
}).listen(${proxyPort}, '127.0.0.1', () => fs.writeFileSync(pidFile, String(process.pid)));
`;

interface Policies {
  readonly url: string;
  /** The server that `bake.contact` names, at this URL; by default the repository. */
  readonly contact?: ContactServer;
  /** Shell on the host, after which the server is reachable. */
  readonly good: string;
  /** Shell on the host, after which the server is not reachable. */
  readonly bad: string;
  /** Shell on the host that ends the processes of `good`. */
  readonly end?: string;
}

interface Scene {
  readonly contact: ContactHost;
  readonly network: NetworkPair;
}

/** A host with the settled serial 1, which has the good policy. */
async function withHost(
  context: TestContext,
  policiesOf: (network: NetworkPair) => Policies,
  act: (scene: Scene, policies: Policies) => Promise<void>,
): Promise<void> {
  using dir = tempDir();
  await using network = await networkPair(dir);
  // A container may forbid network namespaces. In CI networkPair throws then.
  if (network === undefined) return context.skip('no network namespaces for this user');
  const policies = policiesOf(network);
  const run = network.onHost('sh', '-ec', '. "$1"', 'sh', '{current}/access/policy.sh');
  using contact = await contactHost({
    first: { f: '1', 'policy.sh': policies.good },
    groups: { app: { config: { load: { run, timeoutMs: 20_000 } } } },
    bundles: [{ name: 'access', bake: { ...bake, contact: policies.contact ?? 'repository' } }],
    askServer: (server) => network.ask(policies.url, server),
  });
  try {
    await act({ contact, network }, policies);
  } finally {
    const [program = '', ...args] = network.onHost('sh', '-c', policies.end ?? 'true');
    spawnSync(program, args);
  }
}

const kinds: Readonly<Record<string, (network: NetworkPair) => Policies>> = {
  'a firewall that drops the port of the repository': () => ({
    url: byAddress,
    good: 'nft flush ruleset',
    bad: `nft "flush ruleset; table inet writ { chain output { type filter hook output priority 0;
      ct state established accept; tcp dport ${serverPort} drop; }; }"`,
  }),
  'a route into a black hole': () => ({
    url: byAddress,
    good: `ip route flush type blackhole`,
    bad: `ip route add blackhole ${serverAddress}/32`,
  }),
  'a resolver that does not answer': ({ resolverFile }) => {
    const resolver = (address: string) =>
      `printf 'nameserver ${address}\\noptions timeout:1 attempts:1\\n' > ${resolverFile}`;
    return { url: byName, good: resolver(serverAddress), bad: resolver('10.9.0.77') };
  },
  'a proxy that goes away': ({ resolverFile }) => {
    const pidFile = `${resolverFile}.relay`;
    const start = [...scriptArgv(relay), pidFile].map((one) => `'${one.replaceAll("'", "'\\''")}'`).join(' ');
    const isThere = `test -e ${pidFile}`;
    return {
      url: byProxy,
      good: `${isThere} || { setsid ${start} </dev/null >/dev/null 2>&1 & while ! ${isThere}; do sleep 0.05; done; }`,
      bad: `kill "$(cat ${pidFile})"; rm ${pidFile}`,
      end: `test ! -e ${pidFile} || kill "$(cat ${pidFile})"`,
    };
  },
};

describe('a release that cuts its host off', { ...options, concurrency: true }, () => {
  for (const [name, policiesOf] of Object.entries(kinds)) {
    it(`is rolled back and held: ${name}`, async (context) => {
      await withHost(context, policiesOf, async ({ contact, network }, { bad, url }) => {
        assert.equal(await network.ask(url), undefined);
        assert.equal((await contact.take(2, { f: '2', 'policy.sh': bad })).outcome, 'activated');
        assert.notEqual(await network.ask(url), undefined, 'it is cut off');
        await contact.wait(70 * second);
        assert.equal(contact.active(), '1');
        assert.equal(contact.test.host.ledger.read().lostContacts?.['access']?.state, 'held');
        assert.equal(await network.ask(url), undefined, 'it is reached again');
      });
    });
  }

  const dropping = (port: number, url: string, contact: ContactServer) => (): Policies => ({
    ...{ url, contact, good: 'nft flush ruleset' },
    bad: `nft "flush ruleset; table inet writ { chain output { type filter hook output priority 0;
      tcp dport ${port} drop; }; }"`,
  });

  /** The observed server, the port that the release closes, and the contact of the other server. */
  const halves = [
    ['fleet', fleetPort, byFleet, byAddress, 'repository'],
    ['repository', serverPort, byAddress, byFleet, 'fleet'],
  ] as const;

  for (const [watched, port, url, otherUrl, other] of halves) {
    it(`is rolled back if only its ${watched} server is unreachable, and contact is ${watched}`, async (context) => {
      await withHost(context, dropping(port, url, watched), async ({ contact, network }, { bad }) => {
        await contact.take(2, { f: '2', 'policy.sh': bad });
        assert.equal(await network.ask(otherUrl, other), undefined, `the ${other} server is reached`);
        await contact.wait(70 * second);
        assert.deepEqual([contact.active(), new Set(contact.askedServers)], ['1', new Set([watched])]);
        assert.equal(contact.test.host.ledger.read().lostContacts?.['access']?.state, 'held');
      });
    });

    it(`stays if only its ${watched} server is unreachable, and contact is ${other}`, async (context) => {
      await withHost(context, dropping(port, otherUrl, other), async ({ contact, network }, { bad }) => {
        await contact.take(2, { f: '2', 'policy.sh': bad });
        assert.notEqual(await network.ask(url, watched), undefined, `the ${watched} server is not reached`);
        await contact.wait(70 * second);
        assert.deepEqual([contact.active(), contact.restores.length], ['2', 0]);
      });
    });
  }

  const harmless = (): Policies => ({ url: byAddress, good: 'nft flush ruleset', bad: 'true' });

  it('does not happen when the server restarts after the swap and answers 503', async (context) => {
    await withHost(context, harmless, async ({ contact, network }, { bad }) => {
      await contact.take(2, { f: '2', 'policy.sh': bad });
      await network.answerWith('off');
      await contact.wait(20 * second);
      await network.answerWith(503);
      await contact.wait(80 * second);
      assert.deepEqual([contact.active(), contact.restores.length], ['2', 0]);
    });
  });

  it('does not happen when the server was unreachable before the swap', async (context) => {
    await withHost(context, harmless, async ({ contact, network }, { bad }) => {
      await network.answerWith('off');
      await contact.take(2, { f: '2', 'policy.sh': bad });
      await contact.wait(100 * second);
      assert.deepEqual([contact.active(), contact.restores.length], ['2', 0]);
    });
  });
});

// Meta, 2021-10-04: a release of network policy cuts the host off from the server that could repair it. Two rows, a firewall and
// a route, each in network namespaces of its own with the real nftables and routing table.
import { spawnSync } from 'node:child_process';
import { needsNetworkPair, networkPair, serverAddress, serverPort } from '../../kit/net/network-pair.js';
import { needs } from '../../kit/programs/real-programs.js';
import { judgeReplay } from '../rules/judge.js';
import type { Outage, Replayed, ReplayOptions } from '../stage/outage.js';
import { type OutageHost, outageHost } from '../stage/outage-host.js';
import { startShellLoop, workerProgram } from '../stage/supervisors.js';

interface NetworkPolicy {
  /** Shell on the host: with it the server is reachable. */
  readonly good: string;
  /** Shell on the host: with it the server is unreachable. */
  readonly bad: string;
}

const reached = 'the server is reached';

const firewall: NetworkPolicy = {
  good: 'nft flush ruleset',
  bad: `nft "flush ruleset; table inet edge { chain output { type filter hook output priority 0;
  ct state established accept; tcp dport ${serverPort} drop; }; }"`,
};
const route: NetworkPolicy = {
  good: 'ip route flush type blackhole',
  bad: `ip route add blackhole ${serverAddress}/32`,
};

const yaml = `bundles:
  - name: network
    bake: { for: 10s, contact: repository }
workers:
  - name: network
    uses: [network]
    load: { run: [sh, -ec, '. "$1"', sh, "{current}/network/policy.sh"], sandbox: "off" }
`;

async function replay(options: ReplayOptions, { good, bad }: NetworkPolicy): Promise<Replayed> {
  const { dir, report } = options;
  await using network = await networkPair(dir);
  if (network === undefined) throw new Error('this user may make no network namespaces');
  // `writ serve` replaces the server of the test kit.
  await network.answerWith('off');
  await using host = await outageHost(options, {
    ...{ bundle: 'network', yaml, listen: `${serverAddress}:${serverPort}` },
    ...{ underServer: network.onServer(), underAgent: network.onHost() },
  });
  const policy = (version: number, script: string) => ({ 'policy.sh': `# version ${version}\n${script}\n` });
  const socket = dir.join('network.sock');
  const asker = [workerProgram('edge-network'), serverAddress, String(serverPort), socket];
  await using _worker = startShellLoop(dir.path, network.onHost(process.execPath, ...asker));
  await host.publish(policy(1, good));
  await host.startAgent();
  await host.untilActive();
  await host.untilSettled();
  report('release 1 has settled');
  await using watch = await host.watch([socket]);
  await host.publish(policy(2, bad));
  await host.waits(60_000, () => watch.now().answers[0] !== reached);
  report('the host is cut off');
  await host.waits(180_000, () => watch.now().answers[0] === reached);
  const isHeld = await host.waits(120_000, () => isKeptOut(host));
  report('contact is back');
  const found = { samples: [...watch.samples], history: await host.history() };
  // The corrected release is small, because it has no ruleset: without --fixes the publisher would refuse that.
  await host.publish(policy(3, good), '--fixes', '2');
  const isCorrected = await host.waits(120_000, async () => (await activeSerial(host)) === 3);
  const judged = judgeReplay(found, {
    ...{ old: reached, happened: ['BAKE_FAILED (CONTACT_LOST)'], maxAwaySeconds: 120 },
  });
  const complaints = [
    ...judged.complaints,
    ...(isHeld ? [] : ['release 2 is not held after contact returned']),
    ...(isCorrected ? [] : ['the corrected release 3 did not become active']),
  ];
  return { ...judged, complaints };
}

async function isKeptOut(host: OutageHost): Promise<boolean> {
  const problems = ((await host.status())['problems'] ?? []) as readonly { readonly message: string }[];
  return problems.some(({ message }) => message.includes('serial 2 is held until a newer release'));
}

async function activeSerial(host: OutageHost): Promise<number | undefined> {
  const bundles = ((await host.status())['bundles'] ?? []) as readonly { readonly serial?: number }[];
  return bundles[0]?.serial;
}

/** @returns the reason why this machine cannot replay the rows, which the table shows; in CI a missing program fails */
function missing(): string | undefined {
  const { skip } = { ...needs('nsenter', 'util-linux'), ...needsNetworkPair };
  if (skip !== undefined) return skip;
  const user = process.getuid?.() === 0 ? [] : ['-r'];
  const tried = spawnSync('unshare', [...user, '-nm', 'true']);
  return tried.status === 0 ? undefined : 'this user may make no network namespaces';
}

function metaRow(kind: string, policy: NetworkPolicy): Outage {
  return {
    name: `meta-${kind}`,
    title: 'Meta, 2021-10-04',
    mechanism: `a ${kind} release cuts the host off from the server that could repair it`,
    supervisor: 'none; a loader applies the policy',
    missing,
    replay: (options) => replay(options, policy),
  };
}

export const metaFirewall = metaRow('firewall', firewall);
export const metaRoute = metaRow('route', route);

// The last sentence of a fleet summary: the adoption of the channel with the most hosts that have not confirmed its release. Pure.
import { grouped } from '../text/grouped.js';
import type { FleetFacts, HostCounts, ReleaseCount, RepositoryStatus } from './answers.js';
import { hostsOfRelease } from './delivery-state.js';

/** @returns the adoption of the channel with the most unconfirmed hosts; '' if no host runs a release */
export function standingText(facts: FleetFacts): string {
  const shares = channelsOf(facts);
  const worst = shares.toSorted((a, b) => b.of - b.confirmed - (a.of - a.confirmed))[0];
  if (worst === undefined) return '';
  const { confirmed, notified, silent, cloned, of, bundle, serial } = worst;
  const others = [
    notified === 0 ? '' : `, ${grouped(notified)} ${notified === 1 ? 'has' : 'have'} nothing to confirm it`,
    silent === 0 ? '' : `, ${grouped(silent)} had it and ${silent === 1 ? 'is' : 'are'} silent`,
    cloned === 0 ? '' : `, ${grouped(cloned)} ${cloned === 1 ? 'shares' : 'share'} a key with a clone`,
  ].join('');
  const should = worst.basis === 'signed' ? ', the release that should be in use' : '';
  return `${grouped(confirmed)} of ${grouped(of)} confirmed ${bundle} ${serial}${should}${others}.`;
}

/**
 * @returns one sentence for a fleet without findings: all hosts confirmed, or the adoption of the channel with most
 * pending hosts
 */
export function allWell(facts: FleetFacts): string {
  const [first, ...others] = channelsOf(facts);
  if (first === undefined) return `${hostsText(facts.hosts.accepted)} enrolled, and no release in use yet.`;
  const all = [first, ...others];
  if (all.every((one) => one.confirmed === one.of)) {
    const isSigned = all.every(({ basis }) => basis === 'signed');
    const each = isSigned ? 'what should be in use of each bundle' : 'the newest release of each bundle';
    const one = isSigned ? `, the release that should be in use` : '';
    const what = others.length === 0 ? `${first.bundle} ${first.serial}${one}` : each;
    return `All ${hostsText(facts.hosts.accepted)} confirmed ${what}.`.replace(
      'All 1 host ',
      'The one host ',
    );
  }
  return standingText(facts);
}

interface ChannelShare {
  readonly bundle: string;
  readonly serial: number;
  /** Hosts that report the channel and have not stopped, as in a wait. */
  readonly of: number;
  readonly confirmed: number;
  /** Hosts with this release and without a worker that can confirm it. */
  readonly notified: number;
  /** Hosts that reported this release, and are silent now. */
  readonly silent: number;
  /** Hosts that reported this release, and share their key with a clone. */
  readonly cloned: number;
  /** How the release was chosen: the head in signed metadata, or the newest release that hosts report. */
  readonly basis: 'signed' | 'reported';
}

function channelsOf({ releases, idle = [], repositories = [] }: FleetFacts): ChannelShare[] {
  const channels = new Map<string, ReleaseCount[]>();
  for (const one of releases) {
    const name = JSON.stringify([one.bundle, one.channel]);
    channels.set(name, [...(channels.get(name) ?? []), one]);
  }
  return [...channels.values()].map((all) => {
    const [first] = all as [ReleaseCount];
    const signed = signedOf(repositories, first);
    const basis = signed.length > 0 && all.some((one) => one.standing !== 'unknown') ? 'signed' : 'reported';
    const newest = all.filter((one) =>
      basis === 'signed' ? one.standing === 'current' : one.place === 'newest',
    );
    const sum = (list: readonly ReleaseCount[], of: (one: ReleaseCount) => number): number =>
      list.reduce((total, one) => total + of(one), 0);
    return {
      bundle: first.bundle,
      serial: newest[0]?.serial ?? signed[0]?.serial ?? 0,
      basis,
      of: sum(all, (one) => hostsOfRelease(one) - (one.stopped ?? 0)) + withoutRelease(idle, first),
      confirmed: sum(newest, (one) => one.confirmed),
      notified: sum(newest, (one) => one.notified),
      silent: sum(newest, (one) => one.silent ?? 0),
      cloned: sum(newest, (one) => one.cloned ?? 0),
    };
  });
}

function withoutRelease(
  idle: NonNullable<FleetFacts['idle']>,
  { bundle, channel }: Pick<ReleaseCount, 'bundle' | 'channel'>,
): number {
  return idle
    .filter((one) => one.bundle === bundle && one.channel === channel)
    .reduce((sum, { hosts }) => sum + hosts, 0);
}

/** @returns as `1 host` or `12,000 hosts` */
export function hostsText(count: HostCounts['accepted']): string {
  return `${grouped(count)} ${count === 1 ? 'host' : 'hosts'}`;
}

/** @returns the signed releases of one channel in all repositories; empty where no repository lists the channel */
export function signedOf(
  repositories: readonly RepositoryStatus[],
  { bundle, channel }: Pick<ReleaseCount, 'bundle' | 'channel'>,
): RepositoryStatus['releases'] {
  return repositories.flatMap(({ releases }) =>
    releases.filter((one) => one.bundle === bundle && one.channel === channel),
  );
}

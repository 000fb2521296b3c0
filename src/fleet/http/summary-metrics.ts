// Shows a summary as gauges: numbers without names for each client that reaches the server, and numbers by bundle and channel for
// callers that may see the fleet. Values of labels come from fixed sets and from a bounded number of the largest channels: a host that
// invents bundles or codes makes no series. A number that is not known is left out; its old value is not shown.
import { errorCodes } from '../../core/error-codes.js';
import type { FleetSummary, OfferGroup, ReleaseCount } from '../../core/fleet/answers.js';
import { deliveryStates, hostsOfRelease } from '../../core/fleet/delivery-state.js';
import { bakeStates } from '../../core/fleet/report.js';
import type { Gauge, MetricLabels, Metrics } from '../../platform/telemetry/metrics.js';

/** @param summary undefined while the store does not answer */
export type ShowSummary = (summary: FleetSummary | undefined) => void;

const states = ['refused', 'rolled-back', 'deferred', 'failed'] as const;
const places = ['newest', 'tail'] as const;
const levels = ['ok', 'warning', 'critical'];
const topRoles = ['root', 'targets', 'snapshot', 'timestamp'];
/** Each has up to a dozen series. */
const maxChannels = 100;

/** Gauges by the ends of their names, with their help and labels. */
type Table = Readonly<Record<string, readonly [help: string, labels: readonly string[]]>>;

function gaugesOf<T extends Table>(metrics: Metrics, table: T): Readonly<Record<keyof T, Gauge>> {
  const made = Object.entries(table).map(([name, [help, labels]]) => [
    name,
    metrics.gauge({ name: `writ_fleet_${name}`, help, labels }),
  ]);
  return Object.fromEntries(made) as Record<keyof T, Gauge>;
}

/**
 * Registers the gauges without names of bundles.
 * @returns a function that replaces all their values by those of a summary. Without a summary only `store_up` remains,
 * as 0.
 */
export function plainGauges(metrics: Metrics): ShowSummary {
  const gauges = gaugesOf(metrics, {
    store_up: ['1: the store answered when this was counted.', []],
    health: ['As `writ fleet status`: 0 ok, 1 warning, 2 critical.', []],
    findings: ['Problems of the fleet, by their codes.', ['code']],
    hosts: [
      'Hosts by state; stopped, silent, unjudged, blocked and cloned ones are accepted too.',
      ['state'],
    ],
    silence_judged: ['0: the liveness of most hosts is unknown.', []],
    places: ['Hosts times bundles by how far what they use is proven.', ['place', 'state']],
    offers: ['Places where an offered release is not active, by why.', ['state']],
    offers_by_code: ['The same by error code; `other` for unknown codes.', ['state', 'code']],
    role_expiry_timestamp_seconds: [
      'When a role expires, as hosts know it; delegated roles together.',
      ['role'],
    ],
  });
  return (summary) => {
    for (const gauge of Object.values(gauges)) gauge.clear();
    gauges.store_up.set({}, summary === undefined ? 0 : 1);
    if (summary === undefined) return;
    gauges.health.set({}, levels.indexOf(summary.level));
    const found = summary.findings.map(({ code }) => [{ code }, 1] as const);
    setSums(gauges.findings, found);
    for (const [state, count] of Object.entries(summary.hosts)) gauges.hosts.set({ state }, count);
    gauges.silence_judged.set({}, summary.silence === 'judged' ? 1 : 0);
    setSums(gauges.places, placesOf(summary.releases));
    setSums(gauges.offers, offersOf(summary.offers));
    const coded = summary.offers.map(
      ({ state, code, hosts }) => [{ state, code: known(code) }, hosts] as const,
    );
    setSums(gauges.offers_by_code, coded);
    for (const [role, atMs] of roleEnds(summary))
      gauges.role_expiry_timestamp_seconds.set({ role }, atMs / 1000);
  };
}

/**
 * Registers the gauges by bundle and channel.
 * @returns a function that replaces all their values by those of a summary: the 100 channels with most hosts. Without
 * a summary no value remains.
 */
export function namedGauges(metrics: Metrics): ShowSummary {
  const gauges = gaugesOf(metrics, {
    channel_hosts: [
      'Hosts by bundle and channel, place and how far what they use is proven.',
      ['bundle', 'channel', 'place', 'state'],
    ],
    channel_bakes: [
      'Hosts by bundle and channel, place and where the release stands in its bake time.',
      ['bundle', 'channel', 'place', 'bake'],
    ],
    channel_offers: ['Hosts where an offered release is not active, by why.', ['bundle', 'channel', 'state']],
    channel_newest_serial: ['The newest serial that a host uses.', ['bundle', 'channel']],
    channels_left_out: ['Channels beyond the 100 with most hosts, which are not shown.', []],
  });
  return (summary) => {
    for (const gauge of Object.values(gauges)) gauge.clear();
    if (summary === undefined) return;
    const { shown, leftOut } = largestChannels(summary);
    gauges.channels_left_out.set({}, leftOut);
    for (const one of shown) showChannel(gauges, one);
  };
}

type ChannelGauges = Readonly<
  Record<'channel_hosts' | 'channel_bakes' | 'channel_offers' | 'channel_newest_serial', Gauge>
>;

function showChannel(gauges: ChannelGauges, { bundle, channel, releases, offers }: Channel): void {
  const at = { bundle, channel };
  for (const [labels, count] of placesOf(releases)) gauges.channel_hosts.set({ ...at, ...labels }, count);
  for (const [labels, count] of bakesOf(releases)) gauges.channel_bakes.set({ ...at, ...labels }, count);
  for (const [labels, count] of offersOf(offers)) gauges.channel_offers.set({ ...at, ...labels }, count);
  gauges.channel_newest_serial.set(at, Math.max(0, ...releases.map(({ serial }) => serial)));
}

type Counted = readonly (readonly [labels: MetricLabels, count: number])[];

/** All places and states, also those without a host: an alarm rule reads 0 in place of a missing series. */
function placesOf(releases: readonly ReleaseCount[]): Counted {
  return places.flatMap((place) => {
    const there = releases.filter((one) => one.place === place);
    return deliveryStates.map((state) => [{ place, state }, sum(there, (one) => one[state] ?? 0)] as const);
  });
}

function bakesOf(releases: readonly ReleaseCount[]): Counted {
  return places.flatMap((place) => {
    const there = releases.filter((one) => one.place === place);
    return bakeStates.map(
      (bake) => [{ place, bake }, sum(there, ({ bakes }) => bakes?.[bake] ?? 0)] as const,
    );
  });
}

function offersOf(offers: readonly OfferGroup[]): Counted {
  return states.map((state) => {
    const there = offers.filter((one) => one.state === state);
    return [{ state }, sum(there, hostsOf)] as const;
  });
}

interface Channel {
  readonly bundle: string;
  readonly channel: string;
  readonly releases: ReleaseCount[];
  readonly offers: OfferGroup[];
}

function largestChannels({ releases, offers }: FleetSummary) {
  const channels = new Map<string, Channel>();
  const channelOf = ({ bundle, channel }: { readonly bundle: string; readonly channel: string }): Channel => {
    const key = JSON.stringify([bundle, channel]);
    const there = channels.get(key) ?? { bundle, channel, releases: [], offers: [] };
    channels.set(key, there);
    return there;
  };
  for (const one of releases) channelOf(one).releases.push(one);
  for (const one of offers) channelOf(one).offers.push(one);
  const sizeOf = (one: Channel): number => sum(one.releases, hostsOfRelease) + sum(one.offers, hostsOf);
  const all = [...channels.values()].toSorted((a, b) => sizeOf(b) - sizeOf(a));
  return { shown: all.slice(0, maxChannels), leftOut: Math.max(0, all.length - maxChannels) };
}

function known(code: string): string {
  return Object.hasOwn(errorCodes, code) ? code : 'other';
}

/** The name of a delegated role is the name of a team: only the one that expires first is shown, without its name. */
function roleEnds({ keys }: FleetSummary): ReadonlyMap<string, number> {
  const ends = new Map<string, number>();
  for (const { role, expiresAtMs } of keys) {
    const shown = topRoles.includes(role) ? role : 'delegated';
    ends.set(shown, Math.min(ends.get(shown) ?? expiresAtMs, expiresAtMs));
  }
  return ends;
}

function hostsOf({ hosts }: OfferGroup): number {
  return hosts;
}

function sum<T>(list: readonly T[], of: (one: T) => number): number {
  return list.reduce((total, one) => total + of(one), 0);
}

/** Numbers with the same labels are one series. */
function setSums(gauge: Gauge, counted: Counted): void {
  const sums = new Map<string, readonly [MetricLabels, number]>();
  for (const [labels, count] of counted) {
    const key = JSON.stringify(labels);
    sums.set(key, [labels, count + (sums.get(key)?.[1] ?? 0)]);
  }
  for (const [labels, count] of sums.values()) gauge.set(labels, count);
}

// Computes the shapes of the charts. A bar for each bundle and channel: the newest release by delivery state, then older releases; one
// host in a million is still visible. A curve of confirmations in steps, because a host confirms at one moment; the SVG has its
// origin at 0,0 and the given width and height. Pure.
import type { ReleaseCount } from '../../core/fleet/answers.js';
import {
  type DeliveryState,
  deliveryStates,
  hostsOfRelease as hostsOf,
  provenStates,
} from '../../core/fleet/delivery-state.js';
import { grouped } from '../../core/text/grouped.js';

export interface Segment {
  readonly tone: DeliveryState | 'tail' | 'old';
  readonly label: string;
  readonly hosts: number;
  readonly x: number;
  readonly width: number;
}

export interface Bar {
  readonly bundle: string;
  readonly channel: string;
  readonly hosts: number;
  /** Releases of the bar, the newest first. */
  readonly releases: readonly ReleaseCount[];
  readonly segments: readonly Segment[];
}

export const barWidth = 1000;
/** Least visible width of a segment. */
const leastWidth = 6;
/** Older releases with their own segment. All further ones share one. */
const maxTailParts = 8;

/** @returns one bar for each bundle and channel, sorted by name */
export function barsOf(releases: readonly ReleaseCount[]): readonly Bar[] {
  const groups = new Map<string, ReleaseCount[]>();
  for (const release of releases) {
    const name = JSON.stringify([release.bundle, release.channel]);
    groups.set(name, [...(groups.get(name) ?? []), release]);
  }
  const bars = [...groups.values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const sorted = group.toSorted((a, b) => b.serial - a.serial || hostsOf(b) - hostsOf(a));
    const hosts = sorted.reduce((sum, one) => sum + hostsOf(one), 0);
    const { bundle, channel } = first;
    return [{ bundle, channel, hosts, releases: sorted, segments: placeSegments(partsOf(sorted)) }];
  });
  return bars.sort((a, b) => order(a.bundle, b.bundle) || order(a.channel, b.channel));
}

type Part = Omit<Segment, 'x' | 'width'>;

function partsOf(releases: readonly ReleaseCount[]): Part[] {
  const newest = releases.filter(({ place }) => place === 'newest').flatMap(proofsOf);
  const tail = releases.filter(({ place }) => place === 'tail');
  const parts = tail.slice(0, maxTailParts).map((one, index): Part => {
    const tone = index % 2 === 0 ? 'tail' : 'old';
    return { tone, label: `serial ${one.serial}`, hosts: hostsOf(one) };
  });
  const rest = tail.slice(maxTailParts);
  const older = rest.reduce((sum, one) => sum + hostsOf(one), 0);
  const shared: Part = { tone: 'old', label: `${grouped(rest.length)} older`, hosts: older };
  return [...newest, ...parts, shared].filter(({ hosts }) => hosts > 0);
}

/** @returns the states to show as columns: silent, stopped and cloned only if a host has this state */
export function shownStates(releases: readonly ReleaseCount[]): readonly DeliveryState[] {
  return deliveryStates.filter(
    (state) => provenStates.includes(state) || releases.some((one) => (one[state] ?? 0) > 0),
  );
}

function proofsOf(release: ReleaseCount): Part[] {
  return deliveryStates.map((tone) => {
    return { tone, label: `serial ${release.serial} ${tone}`, hosts: release[tone] ?? 0 };
  });
}

/** Gives every segment the least width, and divides the rest by the number of hosts. */
function placeSegments(parts: readonly Part[]): Segment[] {
  const all = parts.reduce((sum, { hosts }) => sum + hosts, 0);
  const sharedWidth = barWidth - leastWidth * parts.length;
  let x = 0;
  return parts.map((part) => {
    const width = leastWidth + (part.hosts / all) * sharedWidth;
    const segment = { ...part, x: rounded(x), width: rounded(width) };
    x += width;
    return segment;
  });
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function order(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

export interface CurvePoint {
  readonly atMs: number;
  readonly confirmed: number;
}

export interface CurveBox {
  readonly width: number;
  readonly height: number;
  /** Number of hosts at the upper edge. */
  readonly hosts: number;
  /** Time at the right edge. The line continues horizontally to it. */
  readonly untilMs: number;
}

/** @returns the attribute `d` of the SVG path; '' without points */
export function curvePath(points: readonly CurvePoint[], box: CurveBox): string {
  const [first] = points;
  if (first === undefined) return '';
  const endMs = Math.max(box.untilMs, ...points.map(({ atMs }) => atMs));
  const spanMs = Math.max(1, endMs - first.atMs);
  const most = Math.max(1, box.hosts, ...points.map(({ confirmed }) => confirmed));
  const x = (atMs: number): number => tenth(((atMs - first.atMs) / spanMs) * box.width);
  const y = (count: number): number => tenth(box.height - (count / most) * box.height);
  const steps = points.map(({ atMs, confirmed }) => `H${x(atMs)}V${y(confirmed)}`);
  return `M0 ${box.height}${steps.join('')}H${box.width}`;
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}

// The results of a simulated fleet, in numbers and as a table: each period, and the observed herds. Pure.
import { alignTable } from '../report/table.js';
import { isHerd, type Load } from './load-curve.js';
import type { VirtualFleet, VirtualFleetOptions } from './virtual-fleet.js';

export interface SimulatedRun {
  readonly options: VirtualFleetOptions;
  readonly times: readonly { readonly name: string; readonly load: Load; readonly changed: number }[];
  /** Names of the times in which hosts came together. */
  readonly herds: readonly string[];
  readonly reportBytes: number;
  readonly turnedAway: number;
  readonly grantedMs: number;
  /** Omitted if a host did not report again. */
  readonly healedMs?: number;
}

/** Before the first release, in seconds: what all else is compared with. */
const calmSeconds = 1800;

export function summarize(
  fleet: VirtualFleet,
  options: VirtualFleetOptions,
  reportBytes: number,
): SimulatedRun {
  const { steadyMs, outageMs, afterMs } = options.times;
  const [steady, outage, after] = [steadyMs / 1000, outageMs / 1000, afterMs / 1000];
  const end = steady + outage;
  const spans: readonly (readonly [string, number, number])[] = [
    ['steady', 0, Math.min(calmSeconds, steady / 2)],
    ['a release', steady / 2, steady],
    ['outage, first ten minutes', steady, steady + Math.min(600, outage)],
    ['outage, the rest', steady + Math.min(600, outage), end],
    ['after it, first ten minutes', end, end + Math.min(600, after)],
    ['after it, the rest', end + Math.min(600, after), end + after],
  ];
  const times = spans
    .filter(([, from, to]) => to > from)
    .map(([name, from, to]) => {
      return { name, load: fleet.asked.between(from, to), changed: fleet.changed.between(from, to).requests };
    });
  const calm = fleet.asked.between(0, Math.min(calmSeconds, steady / 2));
  return {
    options,
    times,
    herds: times.filter(({ load }) => isHerd(load, expected(calm, options))).map(({ name }) => name),
    ...{ reportBytes, turnedAway: fleet.turnedAway, grantedMs: fleet.grantedMs },
    ...(fleet.healedMs === undefined ? {} : { healedMs: fleet.healedMs }),
  };
}

/** A fleet without turns is a herd from the first second on: only its mean shows the expected load. */
function expected(calm: Load, { hosts, everyMs }: VirtualFleetOptions): Load {
  return { ...calm, perSecond: Math.min(calm.perSecond, (hosts * 1000) / everyMs) };
}

export function drawRun({
  options,
  times,
  herds,
  turnedAway,
  grantedMs,
  healedMs,
  reportBytes,
}: SimulatedRun): string {
  const shown = (value: number): string => value.toFixed(value < 10 ? 2 : 0);
  const head = ['', 'requests/s', 'fullest 10 s', 'fullest second', 'requests', 'reported something new'];
  const rows = times.map(({ name, load, changed }) => [
    ...[name, shown(load.perSecond), shown(load.windowPeak), String(load.peak)],
    ...[String(load.requests), String(changed)],
  ]);
  const healed =
    healedMs === undefined
      ? 'not all reported again'
      : `all reported ${(healedMs / 1000).toFixed(0)} s after it`;
  return [
    `${options.hosts} hosts, a report each ${options.everyMs / 1000} s, seed ${options.seed}, fault: ${options.fault}`,
    alignTable([head, ...rows]),
    `${turnedAway} answered 503; granted in the mean ${(grantedMs / 1000).toFixed(0)} s; a report has ${reportBytes} bytes; ${healed}`,
    herds.length === 0 ? 'no herd' : `A HERD: ${herds.join('; ')}`,
  ].join('\n');
}

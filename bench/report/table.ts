// The table of a comparison, as Markdown that reads as text too. Pure.
import type { Figure } from '../at-rest.js';
import type { Comparison, Row } from '../compare.js';
import type { Sample } from '../measure/sample.js';
import { summarize } from '../measure/statistics.js';
import { bytes, milliseconds, ratio } from './format.js';

const head = [
  '',
  'wall, median',
  'least to most',
  'times Writ',
  'CPU',
  'peak memory',
  'received',
  'requests',
];
const none = '-';

/** @param baseline the subject that has 1.00 in each task */
export function drawComparison({ rows, absent }: Comparison, baseline: string): string {
  const wallOf = (row: Row): number => medianOf(row.samples, ({ wallMs }) => wallMs) ?? Number.NaN;
  const groups = [...new Set(rows.map(({ task }) => task))].map((task) => {
    const group = rows.filter((row) => row.task === task);
    const writ = group.find(({ subject }) => subject === baseline);
    return [
      [`**${task}**`],
      ...group.flatMap((row) => linesOf(row, writ === undefined ? undefined : wallOf(writ))),
    ];
  });
  const missing = absent.map(({ subject, why }) => `- ${subject}: ${why}`);
  return [alignTable([head, ...groups.flat()]), ...(missing.length > 0 ? ['', ...missing] : [])].join('\n');
}

function linesOf({ subject, samples }: Row, writMs: number | undefined): string[][] {
  const shown = (of: (sample: Sample) => number | undefined, show: (value: number) => string): string => {
    const value = medianOf(samples, of);
    return value === undefined ? none : show(value);
  };
  const costs = [
    shown(({ cpuMs }) => cpuMs, milliseconds),
    shown(({ peakBytes }) => peakBytes, bytes),
    shown(({ receivedBytes }) => receivedBytes, bytes),
    shown(
      ({ requests }) => requests,
      (value) => value.toFixed(0),
    ),
  ];
  const timed = (name: string, of: (sample: Sample) => number | undefined, rest: string[]): string[][] => {
    const wall = summarize(samples.map(of).filter((value) => value !== undefined));
    if (wall === undefined) return [];
    const spread = wall.rounds === 1 ? none : `${milliseconds(wall.least)} to ${milliseconds(wall.most)}`;
    const times = writMs === undefined ? none : ratio(wall.median / writMs);
    return [[name, milliseconds(wall.median), spread, times, ...rest]];
  };
  return [
    ...timed(subject, ({ wallMs }) => wallMs, costs),
    ...timed(
      '- start of its cycle to the swap',
      ({ toSwapMs }) => toSwapMs,
      costs.map(() => none),
    ),
  ];
}

function medianOf(
  samples: readonly Sample[],
  of: (sample: Sample) => number | undefined,
): number | undefined {
  return summarize(samples.map(of).filter((value) => value !== undefined))?.median;
}

export function drawFigures(title: string, figures: readonly Figure[]): string {
  const shown = ({ unit, value }: Figure): string => `${value.toFixed(value < 10 ? 2 : 0)} ${unit}`;
  return alignTable([[title, ''], ...figures.map((figure) => [figure.name, shown(figure)])]);
}

/** @param rows the first is the head; a row that is too short is filled up */
export function alignTable(rows: readonly (readonly string[])[]): string {
  const columns = rows[0]?.length ?? 0;
  const full = rows.map((row) => Array.from({ length: columns }, (_, column) => row[column] ?? ''));
  const widths = Array.from({ length: columns }, (_, column) =>
    Math.max(3, ...full.map((row) => row[column]?.length ?? 0)),
  );
  const padded = (row: readonly string[]): string =>
    `| ${row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`;
  const rule = `|${widths.map((width, column) => (column === 0 ? '-'.repeat(width + 2) : `${'-'.repeat(width + 1)}:`)).join('|')}|`;
  const [first = [], ...rest] = full;
  return [padded(first), rule, ...rest.map(padded)].join('\n');
}

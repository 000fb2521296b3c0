// The table at the end of a run, for people and as JSON. Pure.
import type { Outage, Replayed } from '../stage/outage.js';

/** One outage with its result; `skipped` is the reason why it could not be replayed here. */
export interface Row {
  readonly outage: Pick<Outage, 'name' | 'title' | 'mechanism' | 'supervisor'>;
  readonly replayed: Replayed | { readonly skipped: string };
}

const heads = [
  'outage',
  'as expected',
  'what the host recorded',
  'old policy back after',
  'serves at the end',
];

export function drawTable(rows: readonly Row[]): string {
  const lines = [heads, ...rows.map(cellsOf)];
  const widths = heads.map((_, column) => Math.max(...lines.map((cells) => cells[column]?.length ?? 0)));
  const draw = (cells: readonly string[]): string =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd();
  const complaints = rows.flatMap(({ outage, replayed }) =>
    'skipped' in replayed ? [] : replayed.complaints.map((one) => `${outage.name}: ${one}`),
  );
  return `${[...lines.map(draw), ...complaints].join('\n')}\n`;
}

function cellsOf({ outage, replayed }: Row): string[] {
  if ('skipped' in replayed) return [outage.name, 'skipped', replayed.skipped, '', ''];
  const { happened, awaySeconds, serves, complaints } = replayed;
  const away = awaySeconds === undefined ? 'never away' : `${awaySeconds.toFixed(1)} s`;
  return [outage.name, complaints.length === 0 ? 'yes' : 'NO', happened.join(', '), away, serves];
}

/** One object for scripts. Members are added, never changed. */
export function rowsAsJson(rows: readonly Row[], exitCode: number): string {
  const outages = rows.map(({ outage, replayed }) => ({
    ...outage,
    ...('skipped' in replayed ? replayed : { ...replayed, awaySeconds: replayed.awaySeconds ?? null }),
  }));
  return `${JSON.stringify({ schema: 1, type: 'outages.result', exitCode, outages }, undefined, 2)}\n`;
}

/** A skipped row is no failure, except where `mustRun` asks for all of them. */
export function exitCodeOf(rows: readonly Row[], { mustRun = false } = {}): number {
  const isGood = ({ replayed }: Row): boolean =>
    'skipped' in replayed ? !mustRun : replayed.complaints.length === 0;
  return rows.every(isGood) ? 0 : 1;
}

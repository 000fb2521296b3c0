// docs/truth.md as text: the table of verdicts and below it an item for each cell. Writes it and reads the table again. Pure;
// only verdicts are compared.
import { type Verdict, verdicts } from './judge.js';

export interface Cell {
  readonly daemon: string;
  readonly case: string;
  readonly verdict: Verdict;
  /** What the daemon serves, and what its driver and Writ report, in lines; or the reason for no such case. */
  readonly text: string;
}

/** Verdicts by `daemon:case`. */
export type Recorded = ReadonlyMap<string, Verdict>;

export function cellName(cell: Pick<Cell, 'daemon' | 'case'>): string {
  return `${cell.daemon}:${cell.case}`;
}

/** @returns the table: a row for each daemon, a column for each case */
export function drawTable(cells: readonly Cell[], cases: readonly string[]): string {
  const daemons = [...new Set(cells.map(({ daemon }) => daemon))];
  const verdictOf = new Map(cells.map((cell) => [cellName(cell), cell.verdict]));
  const row = (name: string, columns: readonly string[]): string => `| ${[name, ...columns].join(' | ')} |`;
  return [
    row('daemon', cases),
    `|${'---|'.repeat(cases.length + 1)}`,
    ...daemons.map((daemon) =>
      row(
        daemon,
        cases.map((one) => verdictOf.get(`${daemon}:${one}`) ?? ''),
      ),
    ),
  ].join('\n');
}

export function drawDetails(cells: readonly Cell[]): string {
  const daemons = [...new Set(cells.map(({ daemon }) => daemon))];
  return daemons
    .map((daemon) => {
      const own = cells.filter((cell) => cell.daemon === daemon);
      const lines = own.map((cell) => `- **${cell.case}** \`${cell.verdict}\` ${indented(cell.text)}`);
      return `### ${daemon}\n\n${lines.join('\n')}`;
    })
    .join('\n\n');
}

/** Indents the lines after the first, which belong to the same list item. */
function indented(text: string): string {
  return text.replaceAll('\n', '\n  ');
}

/** @returns the cells with an item on the page, as `drawDetails` wrote them */
export function readDetails(page: string): Cell[] {
  let daemon = '';
  return page.split(/\n(?! {2})/).flatMap((item): Cell[] => {
    daemon = /^### (\S+)$/.exec(item)?.[1] ?? daemon;
    const line = item.replaceAll('\n  ', '\n');
    const [, name, drawn, text = ''] = /^- \*\*(.+?)\*\* `(.+?)` (.*)$/s.exec(line) ?? [];
    const verdict = verdicts.find((one) => one === drawn);
    return name === undefined || verdict === undefined ? [] : [{ daemon, case: name, verdict, text }];
  });
}

/** @returns the cells of these names, in order: the new result when there is one, otherwise the earlier cell */
export function merged(before: readonly Cell[], now: readonly Cell[], names: readonly string[]): Cell[] {
  const all = new Map(
    [...before, ...now].filter(({ verdict }) => verdict !== '?').map((cell) => [cellName(cell), cell]),
  );
  return names.flatMap((name) => all.get(name) ?? []);
}

export interface BusyRun {
  /** The verdicts of the same cells without busy processes. */
  readonly recorded: Recorded;
  readonly busy: number;
  readonly processors: number;
}

/** @returns a summary of the run beside busy processes, and each cell with another verdict than in the table */
export function drawBusy(all: readonly Cell[], { recorded, busy, processors }: BusyRun): string {
  const cells = all.filter(({ verdict }) => verdict !== '-');
  const of = (verdict: Verdict): number => cells.filter((one) => one.verdict === verdict).length;
  const cases = [...new Set(cells.map((one) => one.case))];
  const other = cells.filter((cell) => cell.verdict !== recorded.get(cellName(cell)));
  const played = cases.map((name) => `${name} ${cells.filter((one) => one.case === name).length}`);
  return [
    `${cells.length} cells beside ${busy} busy processes on ${processors} processors: ${of('BETTER')} \`BETTER\`, ${of('WORSE')} \`WORSE\`,`,
    `${other.length} that are not as in the table. Cells of each case: ${played.join(', ')}.`,
    ...(other.length === 0 ? [] : ['']),
    ...other.map((cell) => `- ${cellName(cell)}: \`${cell.verdict}\` ${indented(cell.text)}`),
  ].join('\n');
}

/**
 * @param page complete text
 * @throws Error for a cell that is no verdict
 */
export function readTable(page: string): Recorded {
  const rows = page
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((one) => one.trim()),
    );
  const head = rows.findIndex(([first]) => first === 'daemon');
  const found = new Map<string, Verdict>();
  if (head === -1) return found;
  const cases = (rows[head] ?? []).slice(1);
  for (const [daemon = '', ...columns] of rows.slice(head + 1)) {
    for (const [at, text] of columns.entries()) {
      if (text === '') continue;
      const verdict = verdicts.find((one) => one === text);
      if (verdict === undefined) throw new Error(`${daemon}:${cases[at]} is no verdict: ${text}`);
      found.set(`${daemon}:${cases[at]}`, verdict);
    }
  }
  return found;
}

/** @returns the page with the text between `<!-- NAME -->` and `<!-- /NAME -->` replaced */
export function withPart(page: string, name: string, text: string): string {
  const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from === -1 || to < from) throw new Error(`the page has no part ${name}`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}

/** @returns a line for each unacceptable cell; empty when all are acceptable */
export function complaints(cells: readonly Cell[], recorded: Recorded): string[] {
  return cells.flatMap((cell) => {
    const before = recorded.get(cellName(cell));
    const { verdict } = cell;
    if (verdict === 'BETTER') return [`${cellName(cell)}: Writ reports more than is true. ${cell.text}`];
    if (verdict === 'WORSE') return [`${cellName(cell)}: a good release was refused. ${cell.text}`];
    if (verdict === '?') return [`${cellName(cell)}: ${cell.text}`];
    // Some daemons die sooner or later: a report that is true and complete is no fault, and the next record has it.
    if (before === verdict || (verdict === '=' && before !== undefined && before !== '-')) return [];
    return [`${cellName(cell)}: ${verdict}, docs/truth.md has ${before ?? 'nothing'}. ${cell.text}`];
  });
}

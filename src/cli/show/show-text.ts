// The text of times, durations, tables and counts of workers in all commands: always UTC, aligned columns, no colour.
// Pure text without knowledge of results.
import type { Bounded, StatusReport } from '../../core/protocol/control-protocol.js';
import type { BakeWait, WorkerStatus } from '../../core/status/status.js';
import { refusesAllText } from '../../core/status/worker-rules.js';
import { isoTime } from '../../core/text/iso-time.js';
import { printable } from '../../core/text/printable.js';
import { columnsOf } from '../console/terminal-text.js';

/** @returns `2026-11-21 14:32:05`, in UTC; a dash for a time outside the calendar */
export function secondTime(atMs: number): string {
  return isoTime(atMs)?.slice(0, 19).replace('T', ' ') ?? '-';
}

/** @returns `2026-11-21 14:32 UTC`; a dash for a time outside the calendar */
export function minuteTime(atMs: number): string {
  return isoTime(atMs) === undefined ? '-' : `${secondTime(atMs).slice(0, 16)} UTC`;
}

/** @returns `1.1 s` */
export function seconds(durationMs: number): string {
  return `${(durationMs / 1000).toFixed(1)} s`;
}

const units = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1000],
] as const;

/** @returns the two greatest units, as `4 min 20 s` or `5 h`; days alone, as `3 d`; below a second `0 s` */
export function roughly(durationMs: number): string {
  const rest = Math.max(0, durationMs);
  const first = units.findIndex(([, ms]) => rest >= ms);
  const [unit, ms] = units[first] ?? ['s', 1000];
  const whole = `${Math.floor(rest / ms)} ${unit}`;
  const next = units[first + 1];
  const more = next === undefined ? 0 : Math.floor((rest % ms) / next[1]);
  return next === undefined || more === 0 || unit === 'd' ? whole : `${whole} ${more} ${next[0]}`;
}

/** @returns `1 worker`, `2 workers` */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** @returns the line about a value; no line for undefined */
export function lineOf<T>(value: T | undefined, text: (value: T) => string): string[] {
  return value === undefined ? [] : [text(value)];
}

/** @returns how many lines of the agent's log are missing, as `  log       12 lines could not be written [ENOSPC]` */
export function logLines({ logLosses }: Pick<StatusReport, 'logLosses'>): string[] {
  return lineOf(
    logLosses,
    ({ lines, code }) =>
      `  log       ${counted(lines, 'line')} since the start of the agent could not be written [${code}]`,
  );
}

/** @returns the text's lines, each indented; at most `max` of them, and a count of the rest */
export function indented(text: string, indent: string, max: number): string[] {
  const lines = text.split('\n').filter((line) => line.trim() !== '');
  const shown = lines.slice(0, max).map((line) => `${indent}${line.replaceAll('\t', '  ').trimEnd()}`);
  return lines.length <= max ? shown : [...shown, `${indent}(${counted(lines.length - max, 'more line')})`];
}

/** @returns the number of omitted workers, as `  (120 more workers are not shown)` */
export function truncatedLines({ truncated = {} }: Bounded<object>): string[] {
  return Object.entries(truncated).map(([list, count]) => `  (${count} more ${list} are not shown)`);
}

/** A title, with the alignment of its cells. */
export type Column = string | { readonly right: string };

/** @returns a line of titles and one for each row, indented by two spaces, columns two spaces apart, control characters escaped */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const titles = columns.map((column) => (typeof column === 'string' ? column : column.right));
  const all = [titles, ...rows].map((row) => row.map(printable));
  const widths = columns.map((_, index) => Math.max(...all.map((row) => columnsOf(row[index] ?? ''))));
  return all.map((row) => {
    const cells = columns.map((column, index) => {
      const cell = row[index] ?? '';
      const padding = ' '.repeat((widths[index] ?? 0) - columnsOf(cell));
      return typeof column === 'string' ? cell + padding : padding + cell;
    });
    return `  ${cells.join('  ')}`.trimEnd();
  });
}

/** @returns the missing condition of a bake time, as the end of a sentence */
export function bakeWaitText({ what, of = [] }: BakeWait): string {
  const names = of.join(', ');
  switch (what) {
    case 'worker':
      // A worker is `group/worker`; a group has no slash.
      return names.includes('/')
        ? `a process of ${names} that runs with the release for some time, because earlier ones ended`
        : `a living worker that has taken the release, of ${names}`;
    case 'successor':
      return `a notification of the new process of ${names}`;
    case 'observation':
      return 'the next observation by the agent, which has started now or notifies workers';
    case 'probe':
      return `a right answer of the probe of ${names}`;
    case 'contact':
      return 'an answer of the server';
    case 'agent':
      return 'an agent that observes this host (writ agent)';
    case 'set':
      return `the bake time of ${names}, which moves together with it`;
  }
}

type Answered = Pick<WorkerStatus, 'state' | 'text'>;

/** A worker that was notified and refused. One that refuses each generation counts as unreachable. */
export function isRefusing({ state, text }: Answered): boolean {
  return state === 'refused' || (state === 'unreachable' && text.startsWith(refusesAllText));
}

/** @returns how many workers refused and how many were not notified, each after a comma; `''` for none */
export function missedText(workers: readonly Answered[]): string {
  const all = counted(workers.length, 'worker');
  const refusing = workers.filter(isRefusing).length;
  const missed = workers.filter((one) => one.state === 'unreachable' && !isRefusing(one)).length;
  const refused = refusing === 0 ? '' : `, ${refusing} of ${all} refused`;
  return missed === 0 ? refused : `${refused}, ${missed} of ${all} not notified`;
}

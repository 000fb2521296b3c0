// `writ history` for people: one line for each cycle, or all lines of one cycle. Pure: entries in, lines out.

import type { BundleResult, Problem } from '../../core/cycle/cycle-report.js';
import { isNowActive } from '../../core/cycle/sync-machine.js';
import { describeCaller } from '../../core/names.js';
import type { HistoryEntry } from '../../core/protocol/control-protocol.js';
import { type Block, showResult } from './show-result.js';
import { indented, seconds, secondTime, table } from './show-text.js';

/**
 * @param entries newest first. @param maxLines all if left out; equal failures in a row are one line
 * @returns a table; one line EMPTY without entries
 */
export function showHistory(entries: readonly HistoryEntry[], maxLines = Number.POSITIVE_INFINITY): Block {
  if (entries.length === 0) return { lines: ['EMPTY no cycle has done anything yet'] };
  const rows = groupRepeats(entries)
    .slice(0, maxLines)
    .map(({ entry: { by, result, reason }, times, sinceMs }) => {
      const what = whatText(result) || firstLine(reason ?? '');
      return [
        secondTime(result.startedAtMs),
        result.cycle,
        by === undefined ? result.trigger : describeCaller(by),
        generations(result),
        outcomeText(result),
        seconds(result.durationMs),
        times === 1 ? what : `${what} (${times} times since ${secondTime(sinceMs)})`,
      ];
    });
  return {
    lines: table(['when (UTC)', 'cycle', 'by', 'generation', 'outcome', { right: 'took' }, 'what'], rows),
  };
}

interface RepeatedEntry {
  /** The newest entry of the group. */
  readonly entry: HistoryEntry;
  readonly times: number;
  /** Epoch milliseconds: the start of the oldest entry. */
  readonly sinceMs: number;
}

/** Joins equal failures, because a release that fails at each poll would fill the table and hide earlier cycles. */
function groupRepeats(entries: readonly HistoryEntry[]): readonly RepeatedEntry[] {
  const groups: RepeatedEntry[] = [];
  for (const entry of entries) {
    const last = groups.at(-1);
    const { startedAtMs: sinceMs } = entry.result;
    if (last !== undefined && isRepeat(last.entry, entry))
      groups[groups.length - 1] = { ...last, times: last.times + 1, sinceMs };
    else groups.push({ entry, times: 1, sinceMs });
  }
  return groups;
}

/** A cycle by an operator, with a move, or without a problem always has a line of its own. */
function isRepeat(newer: HistoryEntry, older: HistoryEntry): boolean {
  const textsOf = ({ result, reason }: HistoryEntry): string =>
    JSON.stringify([result.trigger, generations(result), outcomeText(result), whatText(result), reason]);
  const hasProblem = newer.result.problems.length > 0 && !newer.result.changed;
  return hasProblem && (newer.by ?? older.by) === undefined && textsOf(newer) === textsOf(older);
}

/** All lines of one cycle: its steps, its result, every reply of a worker. */
export function showCycle(entry: HistoryEntry): Block {
  const { result, steps, by, reason, recovers } = entry;
  const block = showResult(result);
  const origin = by === undefined ? result.trigger : `${result.trigger} by ${describeCaller(by)}`;
  return {
    ...block,
    lines: [
      `cycle ${result.cycle}  ${secondTime(result.startedAtMs)} UTC  ${origin}${reason === undefined ? '' : `: ${reason}`}`,
      ...(recovers === undefined ? [] : [`  recovers  cycle ${recovers}, which was cut short`]),
      ...steps.flatMap(({ step, verdict, text, durationMs }) => {
        const [first = '', ...rest] = indented(text, '', 200);
        const label = verdict === 'ok' ? '' : `${verdict === 'fail' ? 'FAIL' : verdict} `;
        return [
          `  ${step.padEnd(9)} ${label}${first}  ${seconds(durationMs)}`,
          ...rest.map((line) => `            ${line}`),
        ];
      }),
      ...result.workers.map((one) => `  ${one.worker} (${one.group}) ${one.state}: ${one.text}`),
      ...block.lines,
    ],
    next: 'writ status',
  };
}

function outcomeText({ outcome, confirmed, generation }: HistoryEntry['result']): string {
  const isClaim = generation !== undefined && (outcome === 'activated' || outcome === 'unchanged');
  return isClaim && !confirmed ? `${outcome} (unconfirmed)` : outcome;
}

function generations({ fromGeneration, generation, changed }: HistoryEntry['result']): string {
  const now = generation === undefined ? 'none' : String(generation);
  return changed ? `${fromGeneration ?? 'none'} -> ${now}` : now;
}

function whatText(result: HistoryEntry['result']): string {
  const [repaired] = result.warnings;
  if (result.type === 'repair.result' && result.problems.length === 0 && repaired !== undefined)
    return firstLine(`repaired: ${repaired.message}`);
  const bundles = result.bundles.filter((one) => one.outcome !== 'unchanged').map(bundleText);
  if (bundles.length > 0) return bundles.join('; ');
  const [problem] = result.problems;
  const shown = problem ?? repaired;
  return shown === undefined ? '' : `${shown.code}: ${firstLine(shown.message)}`;
}

function bundleText(one: BundleResult): string {
  const { bundle, fromSerial, toSerial, outcome, problem, withdrawn } = one;
  const left = withdrawn ? ` (${fromSerial} was withdrawn)` : '';
  if (isNowActive(one)) return `${bundle} ${fromSerial ?? 'none'} -> ${toSerial}${fixesText(one)}${left}`;
  const why = problem === undefined ? outcome : whyText(one, problem);
  return `${bundle}${toSerial === undefined ? '' : ` ${toSerial}${fixesText(one)}`}: ${why}`;
}

function fixesText({ fixes }: BundleResult): string {
  return fixes === undefined ? '' : `, fixes ${fixes}`;
}

/** Removes the bundle and its serial from a message that begins with them, because the line already does. */
function whyText({ bundle, toSerial, remembered }: BundleResult, { message }: Problem): string {
  if (remembered === true) return 'refused before';
  const prefixes = [`${bundle}: `, `${bundle} ${toSerial}: `, `${bundle} ${toSerial} `];
  const start = prefixes.find((one) => message.startsWith(one)) ?? '';
  return firstLine(message.slice(start.length));
}

function firstLine(text: string): string {
  const line = text.split('\n', 1)[0] ?? '';
  return line.length > 100 ? `${line.slice(0, 97)}...` : line;
}

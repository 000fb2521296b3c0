// The text of `writ help CODE`: the page of an error code, which needs no network, or similar codes for a mistyped one. Pure
// functions.
import { type ErrorCode, errorCodes } from '../../core/error-codes.js';
import { errorPage } from '../../core/error-docs.js';
import { fleetStates, hostStates, reportStates, type StatePage, serverStates } from './state-codes.js';

const columns = 80;
const nameColumns = 11;
const codes = Object.keys(errorCodes) as ErrorCode[];

/** Each code that is no error, with what it is a state of. */
const states: ReadonlyMap<string, StatePage & { readonly kind: string }> = new Map(
  [
    [fleetStates, 'a finding of the fleet, no error'] as const,
    [reportStates, 'a finding of a report, no error'] as const,
    [serverStates, 'a state of a repository, no error'] as const,
    [hostStates, 'a state of the host, no error'] as const,
  ].flatMap(([pages, kind]) =>
    Object.entries(pages).map(([code, page]) => [code, { ...page, kind }] as const),
  ),
);

interface CodePage {
  readonly code: string;
  readonly kind: string;
  readonly meaning: string;
  readonly effect: string;
  readonly hint: string;
}

function pageOf(name: string): CodePage | undefined {
  const typed = codeLike(name);
  const code = codes.find((one) => one === typed);
  if (code !== undefined) {
    const { kind, exit, meaning, effect, hint } = errorPage(code);
    return { code, kind: `${kind}, ${exit}`, meaning, effect, hint };
  }
  const state = states.get(typed);
  return state && { code: typed, ...state };
}

/** @param name as typed, in any case. @returns the page of the error or state with this code; undefined for another text */
export function codeText(name: string): string | undefined {
  const page = pageOf(name);
  if (page === undefined) return undefined;
  const { code, kind, meaning, effect, hint } = page;
  const rows = [
    ['Kind', kind],
    ['Policy', effect],
    ['What to do', hint],
  ] as const;
  return [
    code,
    '',
    ...wrapped(meaning, columns),
    '',
    ...rows.flatMap(([title, text]) =>
      wrapped(text, columns - nameColumns - 1).map(
        (line, index) => `${(index === 0 ? title : '').padEnd(nameColumns)} ${line}`,
      ),
    ),
    '',
  ].join('\n');
}

const maxNear = 5;
/** Longer than any code: no similar code is searched for a longer text. */
const maxName = 60;

/** @returns at most five similar codes, the nearest first: those that contain the text, else those that differ by a few characters */
export function nearCodes(name: string): readonly ErrorCode[] {
  const typed = codeLike(name);
  if (typed.length < 3 || typed.length > maxName) return [];
  const having = codes.filter((code) => code.includes(typed));
  if (having.length > 0) return having.slice(0, maxNear);
  return codes
    .map((code) => ({ code, steps: editDistance(typed, code) }))
    .filter(({ code, steps }) => steps <= Math.max(2, code.length / 4))
    .toSorted((a, b) => a.steps - b.steps)
    .slice(0, maxNear)
    .map(({ code }) => code);
}

function codeLike(name: string): string {
  return name.toUpperCase().replaceAll('-', '_');
}

/** Characters to add, leave out or change (Levenshtein), one row of the table at a time. */
function editDistance(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [line, character] of [...from].entries()) {
    const next = [line + 1];
    for (let at = 0; at < to.length; at += 1) {
      const changed = (row[at] ?? 0) + (character === to[at] ? 0 : 1);
      next.push(Math.min(changed, (row[at + 1] ?? 0) + 1, (next[at] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}

function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  for (const token of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + token.length <= width)
      lines[lines.length - 1] = `${last} ${token}`;
    else lines.push(token);
  }
  return lines;
}

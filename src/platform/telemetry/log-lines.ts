// A log line as a person at a terminal reads it: time, level word, message, and the facts that are not in it. Text of others is
// escaped, so that no line can steer the terminal or pass for another. Pure; owns no stream and no level.
import { styleText } from 'node:util';
import { printable } from '../../core/text/printable.js';

const words: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'ERROR',
  60: 'FATAL',
};

/** Of every line, and so of none: who logs is the command that was typed. */
const ofEveryLine = new Set(['level', 'time', 'name', 'pid', 'hostname', 'msg']);

const maxValueCharacters = 300;
const maxTraceLines = 20;

/**
 * @param json one line of the log
 * @param colors `level`: the level word has one
 * @returns the lines for it, each with its end
 */
export function humanLine(json: string, colors: 'level' | 'none'): string {
  const entry = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const { level, time, msg } = entry;
  const facts = Object.entries(entry).filter(([key]) => !ofEveryLine.has(key));
  const start = `${dayAndTime(time)}  ${levelWord(level, colors)}  ${printable(String(msg ?? ''))}`;
  const shown = facts.flatMap(([key, value]) => factText(key, value, entry));
  const line = shown.length === 0 ? start : `${start}  ${shown.join(' ')}`;
  return `${[line, ...facts.flatMap(([, value]) => traceLines(value))].join('\n')}\n`;
}

/** @returns `2026-11-26 20:31:05Z` */
function dayAndTime(time: unknown): string {
  return printable(String(time ?? ''))
    .replace('T', ' ')
    .replace(/\.\d+Z$/, 'Z');
}

function levelWord(level: unknown, colors: 'level' | 'none'): string {
  const number = Number(level);
  const word = (words[number] ?? printable(String(level))).padEnd(5);
  if (colors === 'none' || number === 30) return word;
  const style = number < 30 ? 'dim' : number < 50 ? 'yellow' : 'red';
  return styleText(style, word, { validateStream: false });
}

/** Key facts only: of a value inside a value the whole is in the JSON of the log. */
function factText(key: string, value: unknown, entry: Readonly<Record<string, unknown>>): string[] {
  if (value === null || isEmpty(value)) return [];
  if (typeof value !== 'object') return [pair(key, String(value))];
  if (Array.isArray(value)) {
    const isFlat = value.every((one) => typeof one !== 'object');
    return [pair(key, isFlat ? value.join(',') : String(value.length))];
  }
  if (isError(value)) return [pair(key, value.message), ...codeText(value)];
  return Object.entries(value).flatMap(([member, inner]) =>
    typeof inner === 'object' || ofEveryObject.has(member) || entry[member] === inner
      ? []
      : [pair(`${key}.${member}`, String(inner))],
  );
}

/** Members that say how to read the JSON. */
const ofEveryObject = new Set(['schema', 'type']);

function isEmpty(value: unknown): boolean {
  return value === '' || (Array.isArray(value) && value.length === 0);
}

function pair(key: string, text: string): string {
  const cut = text.length > maxValueCharacters ? `${text.slice(0, maxValueCharacters)}...` : text;
  return `${printable(key)}=${printable(/^[^\s"=]+$/.test(cut) ? cut : JSON.stringify(cut))}`;
}

interface LoggedError {
  readonly message: string;
  readonly code?: unknown;
  readonly hint?: unknown;
  /** Not of an error that has a code of Writ's, unless the log is for its makers. */
  readonly stack?: unknown;
}

/** As it is logged: its message is a fact, where it comes from stands below. */
function isError(value: object): value is LoggedError {
  return 'type' in value && 'message' in value && typeof value.message === 'string';
}

function codeText({ code, hint }: LoggedError): string[] {
  return [
    ...(typeof code === 'string' ? [pair('code', code)] : []),
    ...(typeof hint === 'string' ? [pair('hint', hint)] : []),
  ];
}

function traceLines(value: unknown): string[] {
  if (typeof value !== 'object' || value === null || !isError(value) || typeof value.stack !== 'string')
    return [];
  const frames = value.stack.split('\n').filter((line) => /^\s+at /.test(line));
  return frames.slice(0, maxTraceLines).map((line) => `    ${printable(line.trim())}`);
}

// Formats a log line for a terminal: time, level, message, and further facts. Escapes untrusted text, so that it can neither control
// the terminal nor imitate another line. Pure; owns no stream and no level.
import { styleText } from 'node:util';
import { printable } from '../../core/text/printable.js';

const levelNames: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'ERROR',
  60: 'FATAL',
};

/** Members that every line has and that are not shown as facts; the user knows the command that logs. */
const ofEveryLine = new Set(['level', 'time', 'name', 'pid', 'hostname', 'msg']);

const maxValueCharacters = 300;
const maxTraceLines = 20;

/**
 * @param json one line of the log
 * @param colors `level`: the level is coloured
 * @returns one or more lines, each with a line end
 */
export function humanLine(json: string, colors: 'level' | 'none'): string {
  const entry = JSON.parse(json) as Readonly<Record<string, unknown>>;
  const { level, time, msg } = entry;
  const facts = Object.entries(entry).filter(([key]) => !ofEveryLine.has(key));
  const start = `${dayAndTime(time)}  ${levelText(level, colors)}  ${printable(String(msg ?? ''))}`;
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

function levelText(level: unknown, colors: 'level' | 'none'): string {
  const number = Number(level);
  const name = (levelNames[number] ?? printable(String(level))).padEnd(5);
  if (colors === 'none' || number === 30) return name;
  const style = number < 30 ? 'dim' : number < 50 ? 'yellow' : 'red';
  return styleText(style, name, { validateStream: false });
}

/** Shows the first level of a value. The JSON form of the log has nested values. */
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

/** Members that describe the format of the JSON. */
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
  /** Absent for an error with a code of Writ, unless the level is debug or trace. */
  readonly stack?: unknown;
}

/** @returns whether the value is a logged error: its message is shown as a fact, and its stack below */
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

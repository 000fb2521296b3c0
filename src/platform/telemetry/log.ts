// Logging with pino, written synchronously to one stream, so that the last line before a crash is not lost. JSON for programs, text
// lines for a terminal. Owns the fields of every line. Never writes to stdout, which is for answers. Lines that cannot be written
// are lost and counted; the program continues.
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';
import { isWritError } from '../../core/errors.js';
import { gatherLines } from './gathered-lines.js';
import { humanLine } from './log-lines.js';
import { type LogOutput, openLogOutput, type TextLosses } from './standard-streams.js';

export type { Logger } from 'pino';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** Form of a line: JSON, or text with or without a coloured level. */
export type LogForm = 'json' | 'lines' | 'coloured-lines';

/** @returns a logger that writes to stderr */
export function createLog(name: string, level: LogLevel, form: LogForm = 'json'): Logger {
  return logToStderr((output) => logTo(inForm(output, form), name, level));
}

/** Too short for a reader to notice. A line costs a third at thousands of lines a second. */
const gatheringMs = 10;

/** Creates a log for thousands of lines a second, which are written together. A kill of the process loses the last moment. */
export function createBusyLog(name: string, level: LogLevel, form: LogForm = 'json'): Logger {
  const later = (flush: () => void): void => void setTimeout(flush, gatheringMs);
  return logToStderr((output) => logTo(inForm(gatherLines(output, later), form), name, level));
}

const outputs = new WeakMap<Logger, LogOutput>();

/** @returns the lost lines of this log since it was opened; undefined for a log that does not write to stderr */
export function lossesOfLog(log: Logger): TextLosses | undefined {
  return outputs.get(log)?.losses();
}

function logToStderr(open: (output: LogOutput) => Logger): Logger {
  const output = openLogOutput({
    onRecovered: ({ lines, code }) => log.warn({ lines, code }, 'lines of this log could not be written'),
  });
  const log = open(output);
  outputs.set(log, output);
  return log;
}

function inForm(stream: DestinationStream, form: LogForm): DestinationStream {
  if (form === 'json') return stream;
  const colors = form === 'lines' ? 'none' : 'level';
  return { write: (json) => stream.write(humanLine(json, colors)) };
}

function logTo(stream: DestinationStream, name: string, level: LogLevel): Logger {
  const isForMakers = level === 'debug' || level === 'trace';
  const serializers = isForMakers ? {} : { err: errorForOperators };
  return pino({ name, level, timestamp: isoTimes(), serializers }, stream);
}

/** Removes the stack of an error with a code of Writ, because the code and hint are enough for an operator. */
function errorForOperators(error: unknown): unknown {
  const whole = stdSerializers.err(error as Error);
  if (!isWritError(error) || error.code === 'INTERNAL') return whole;
  const { stack: _, ...named } = whole;
  return named;
}

/** Formats the time once for each millisecond, because it costs more than the rest of a line. */
function isoTimes(): () => string {
  let [madeAtMs, member] = [Number.NaN, ''];
  return () => {
    const nowMs = Date.now();
    if (nowMs !== madeAtMs) [madeAtMs, member] = [nowMs, `,"time":"${new Date(nowMs).toISOString()}"`];
    return member;
  };
}

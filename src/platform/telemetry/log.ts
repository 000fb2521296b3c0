// The door to logging: pino, written synchronously to one stream, so that the last line before a crash is there. Machines get
// JSON, people at a terminal lines.
// Owns the fields every line has; never writes to stdout, which carries answers. Lines that cannot be written are lost, and
// counted: the program goes on.
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino';
import { isWritError } from '../../core/errors.js';
import { gatherLines } from './gathered-lines.js';
import { humanLine } from './log-lines.js';
import { type LogOutput, openLogOutput, type TextLosses } from './standard-streams.js';

export type { Logger } from 'pino';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** How a line is written: JSON, or a line for people, with or without a colour on its level word. */
export type LogForm = 'json' | 'lines' | 'coloured-lines';

/** @returns a logger that writes to stderr */
export function createLog(name: string, level: LogLevel, form: LogForm = 'json'): Logger {
  return logToStderr((output) => logTo(inForm(output, form), name, level));
}

/** Who reads along sees no difference, and a line of thousands a second costs a third. */
const gatheringMs = 10;

/** For thousands of lines a second: those of a moment are written together. Who is killed in it leaves its last ones out. */
export function createBusyLog(name: string, level: LogLevel, form: LogForm = 'json'): Logger {
  const later = (flush: () => void): void => void setTimeout(flush, gatheringMs);
  return logToStderr((output) => logTo(inForm(gatherLines(output, later), form), name, level));
}

const outputs = new WeakMap<Logger, LogOutput>();

/** @returns the lines of this log that could not be written since it was opened; undefined for a log that is not stderr's */
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

/** What Writ names itself has a code and a hint: where in the code it was thrown says nothing to whoever runs it. */
function errorForOperators(error: unknown): unknown {
  const whole = stdSerializers.err(error as Error);
  if (!isWritError(error) || error.code === 'INTERNAL') return whole;
  const { stack: _, ...named } = whole;
  return named;
}

/** Made once a millisecond: it costs more than the rest of a line. */
function isoTimes(): () => string {
  let [madeAtMs, member] = [Number.NaN, ''];
  return () => {
    const nowMs = Date.now();
    if (nowMs !== madeAtMs) [madeAtMs, member] = [nowMs, `,"time":"${new Date(nowMs).toISOString()}"`];
    return member;
  };
}

// The door to logging: pino, written synchronously to one stream, so that the last line before a crash is there.
// Owns the fields every line has; never writes to stdout, which carries answers.
import { destination, type Logger, pino } from 'pino';

export type { Logger } from 'pino';

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent';

/** @returns a logger that writes JSON lines to stderr. */
export function createLog(name: string, level: LogLevel): Logger {
  return pino(
    { name, level, timestamp: pino.stdTimeFunctions.isoTime },
    destination({ dest: 2, sync: true }),
  );
}

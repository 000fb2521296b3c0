// A logger without output, for tests and for commands that print their own progress. Not the one of pino, because loading pino takes
// as long as all other modules of such a command.
import type { Logger } from './log.js';

const ignore = (): void => undefined;
const levels = {
  fatal: ignore,
  error: ignore,
  warn: ignore,
  info: ignore,
  debug: ignore,
  trace: ignore,
  silent: ignore,
};

/** @returns a logger with the members that Writ uses */
export function silentLog(): Logger {
  const log: Pick<Logger, keyof typeof levels | 'level' | 'isLevelEnabled'> & {
    readonly child: () => unknown;
  } = {
    ...levels,
    level: 'silent',
    child: () => log,
    isLevelEnabled: () => false,
  };
  return log as unknown as Logger;
}

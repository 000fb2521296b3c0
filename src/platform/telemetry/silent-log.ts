// A logger that says nothing: for tests and for commands that narrate by themselves. Not pino's, which takes as long to load
// as all else that such a command loads.
import type { Logger } from './log.js';

const say = (): void => undefined;
const levels = { fatal: say, error: say, warn: say, info: say, debug: say, trace: say, silent: say };

/** @returns a logger of which only what Writ uses of one is there */
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

// The log format and level of long-running commands: JSON for machines, lines at a terminal. Opens no logger.
import { Option } from '#commander';
import type { LogForm, LogLevel } from '../../platform/telemetry/log.js';
import type { CommandContext } from './command.js';
import type { CommonFlags, Flag } from './flags.js';
import { isPainted } from './paint.js';

const logFlag: Flag<'lines' | 'json' | undefined> = new Option(
  '--log <form>',
  'how the log is written on stderr; by default lines on a terminal, else json',
);

export const logFlags = { log: logFlag.choices(['lines', 'json']) };

/**
 * @returns the form that --log gives, else lines on a terminal and json otherwise; coloured-lines in place of lines if stderr has
 *   colours
 */
export function logForm(
  { log, color }: Pick<CommonFlags, 'color'> & { readonly log: 'lines' | 'json' | undefined },
  { surroundings: { stderr, env } }: Pick<CommandContext, 'surroundings'>,
): LogForm {
  const form = log ?? (stderr.isTTY === true ? 'lines' : 'json');
  return form === 'lines' && isPainted(color, stderr, env) ? 'coloured-lines' : form;
}

/** @returns the lowest level that is logged: warn with --quiet, debug with --verbose, else info */
export function logLevel({ quiet, verbose }: Partial<CommonFlags>): LogLevel & ('warn' | 'debug' | 'info') {
  if (quiet) return 'warn';
  return verbose ? 'debug' : 'info';
}

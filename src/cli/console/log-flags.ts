// How the commands that go on running log: JSON for machines, lines for a person at a terminal, and how much. Owns no logger.
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

/** @returns the form of the log, as asked for or as stderr is */
export function logForm(
  { log, color }: Pick<CommonFlags, 'color'> & { readonly log: 'lines' | 'json' | undefined },
  { surroundings: { stderr, env } }: Pick<CommandContext, 'surroundings'>,
): LogForm {
  const form = log ?? (stderr.isTTY === true ? 'lines' : 'json');
  return form === 'lines' && isPainted(color, stderr, env) ? 'coloured-lines' : form;
}

/** @returns the least level that is written */
export function logLevel({ quiet, verbose }: Partial<CommonFlags>): LogLevel & ('warn' | 'debug' | 'info') {
  if (quiet) return 'warn';
  return verbose ? 'debug' : 'info';
}

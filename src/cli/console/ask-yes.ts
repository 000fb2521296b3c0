// Asks before something that cannot be taken back: y/N at the terminal, or --yes. Nobody at a terminal and no flag is
// an error that names the flag; anything but y is no.
import { WritError } from '../../core/errors.js';
import { askLine } from './ask-line.js';
import type { CommandContext } from './command.js';

export interface YesFlags {
  readonly yes?: boolean;
}

/**
 * @param question one line without the `[y/N]`
 * @returns false when the person said no
 * @throws WritError USAGE when nobody can be asked; INTERRUPTED
 */
export async function askYes(question: string, flags: YesFlags, context: CommandContext): Promise<boolean> {
  if (flags.yes === true) return true;
  if (!context.canAsk) {
    throw new WritError('USAGE', `${question} Nobody can be asked`, {
      hint: 'Say --yes to go on without a question.',
    });
  }
  const answer = await askLine(`${question} [y/N] `, context);
  return /^y(es)?$/i.test(answer.trim());
}

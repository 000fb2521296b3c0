// Asks before something that cannot be taken back: y/N at the terminal, or --yes. Nobody at a terminal and no flag is
// an error that names the flag; anything but y is no.
import { createInterface } from 'node:readline/promises';
import { WritError } from '../core/errors.js';
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
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await lines.question(`${question} [y/N] `, { signal: context.signal });
    return /^y(es)?$/i.test(answer.trim());
  } catch (cause) {
    throw new WritError('INTERRUPTED', 'the question was not answered', { cause });
  } finally {
    lines.close();
  }
}

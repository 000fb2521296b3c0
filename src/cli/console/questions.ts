// Prompts at the terminal before an irreversible command: y/N, or the code of a proposal. Without a terminal and without the
// flag for the answer, the error names the flag.
import { createInterface } from 'node:readline/promises';
import { WritError } from '../../core/errors.js';
import { isSameCode } from '../../publisher/root/proposal-file.js';
import type { CommandContext } from './command.js';

/**
 * Asks for confirmation, unless --yes is given. Every answer except y or yes, in any case, is a refusal.
 * @param question one line without the `[y/N]`
 * @returns false after a refusal
 * @throws WritError USAGE without a terminal; INTERRUPTED
 */
export async function askYes(
  question: string,
  flags: { readonly yes?: boolean | undefined },
  context: CommandContext,
): Promise<boolean> {
  if (flags.yes === true) return true;
  if (!context.canAsk) {
    throw new WritError('USAGE', `${question} There is no terminal to ask on`, {
      hint: 'Use --yes to skip the confirmation.',
    });
  }
  const answer = await askLine(`${question} [y/N] `, context);
  return /^y(es)?$/i.test(answer.trim());
}

const maxAttempts = 3;

/**
 * Compares the code of a proposal with --confirm or a typed code, for which there are three attempts. Operators compare the code
 * by voice. It prevents a signature on a file that an attacker replaced in the mail.
 * @param code such as `3f1a-77c2-90ab-11de`
 * @param given the value of --confirm
 * @throws WritError PROPOSAL_CODE for another code, USAGE without a terminal, INTERRUPTED
 */
export async function confirmCode(
  code: string,
  { confirm: given }: { readonly confirm?: string | undefined },
  context: CommandContext,
): Promise<void> {
  if (given !== undefined) {
    if (isSameCode(code, given)) return;
    throw otherCode();
  }
  if (!context.canAsk) {
    throw new WritError('USAGE', 'the code of the proposal is needed, and there is no terminal to ask on', {
      hint: 'Give the code that you compared by voice with --confirm CODE.',
    });
  }
  context.reporter.drop('confirm');
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    // The right code is never shown before: it would be copied, not compared.
    if (isSameCode(code, await askLine('Type the code that you compared by voice: ', context))) return;
    context.reporter.warn('That is not the code of this file.');
  }
  throw otherCode();
}

function otherCode(): WritError {
  return new WritError('PROPOSAL_CODE', 'the code of this file differs from the one you typed');
}

/**
 * @param question as shown, with a space at its end
 * @throws WritError INTERRUPTED at Ctrl-C, Ctrl-D, a signal, and when the terminal goes away
 */
async function askLine(question: string, { signal, surroundings }: CommandContext): Promise<string> {
  const lines = createInterface({ input: surroundings.stdin, output: surroundings.stderr });
  try {
    // Node ends a prompt only at the two keys; after the end of its input the prompt would wait for ever.
    const closed = new Promise<never>((_resolve, reject) => {
      for (const event of ['SIGINT', 'close'] as const) {
        lines.once(event, () => reject(new Error(`the terminal sent ${event}`)));
      }
    });
    return await Promise.race([lines.question(question, { signal }), closed]);
  } catch (cause) {
    throw new WritError('INTERRUPTED', 'the question was not answered', { cause });
  } finally {
    lines.removeAllListeners('close');
    lines.close();
  }
}

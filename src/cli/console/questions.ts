// Questions to a person at the terminal, before what cannot be taken back: y/N, or the code of a proposal. Nobody at a
// terminal and no flag that answers is an error that names the flag.
import { createInterface } from 'node:readline/promises';
import { WritError } from '../../core/errors.js';
import { isSameCode } from '../../publisher/root/proposal-file.js';
import type { CommandContext } from './command.js';

/**
 * Anything but y is no.
 * @param question one line without the `[y/N]`
 * @returns false when the person said no
 * @throws WritError USAGE when nobody can be asked; INTERRUPTED
 */
export async function askYes(
  question: string,
  flags: { readonly yes?: boolean | undefined },
  context: CommandContext,
): Promise<boolean> {
  if (flags.yes === true) return true;
  if (!context.canAsk) {
    throw new WritError('USAGE', `${question} Nobody can be asked`, {
      hint: 'Say --yes to go on without a question.',
    });
  }
  const answer = await askLine(`${question} [y/N] `, context);
  return /^y(es)?$/i.test(answer.trim());
}

const maxAttempts = 3;

/**
 * Asks for the code that was told by voice: what stands between a swapped file in the mail and a signature.
 * @param code as `3f1a-77c2-90ab-11de`
 * @param given the value of --confirm
 * @throws WritError PROPOSAL_CODE for another code, USAGE when nobody can be asked, INTERRUPTED
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
    throw new WritError('USAGE', 'the code of the proposal is needed, and nobody can be asked', {
      hint: 'Give the code that you were told with --confirm CODE.',
    });
  }
  context.reporter.drop('confirm');
  for (let attempt = 1; attempt <= maxAttempts; attempt += 1) {
    // The right code is never shown before: it would be copied, not compared.
    if (isSameCode(code, await askLine('Type the code you were told: ', context))) return;
    context.reporter.warn('That is not the code of this file.');
  }
  throw otherCode();
}

function otherCode(): WritError {
  return new WritError('PROPOSAL_CODE', 'this file has another code than the one you were told');
}

/**
 * @param question as shown, with a space at its end
 * @throws WritError INTERRUPTED at Ctrl-C, Ctrl-D, a signal, and when the terminal goes away
 */
async function askLine(question: string, { signal, surroundings }: CommandContext): Promise<string> {
  const lines = createInterface({ input: surroundings.stdin, output: surroundings.stderr });
  try {
    // Node itself ends a question at the two keys only; one whose input just ends would wait for ever.
    const closed = new Promise<never>((_resolve, reject) => {
      for (const event of ['SIGINT', 'close'] as const) {
        lines.once(event, () => reject(new Error(`the terminal said ${event}`)));
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

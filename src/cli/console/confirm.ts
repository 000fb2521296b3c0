// Asks a person to type the code that was told by voice: what stands between a swapped file in the mail and a
// signature. Without a terminal the code comes with --confirm.
import { WritError } from '../../core/errors.js';
import { isSameCode } from '../../publisher/root/proposal-file.js';
import { askLine } from './ask-line.js';
import type { CommandContext } from './command.js';

const maxAttempts = 3;

export interface CodeQuestion {
  /** As `3f1a-77c2-90ab-11de`. */
  readonly code: string;
  /** The value of --confirm. */
  readonly given: string | undefined;
}

/** @throws WritError PROPOSAL_CODE for another code, USAGE when nobody can be asked, INTERRUPTED */
export async function confirmCode({ code, given }: CodeQuestion, context: CommandContext): Promise<void> {
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

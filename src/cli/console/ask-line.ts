// One question at the terminal, answered with one line. Whether anybody can be asked is the caller's to see.
import { createInterface } from 'node:readline/promises';
import { WritError } from '../../core/errors.js';
import type { CommandContext } from './command.js';

/**
 * @param question as shown, with a space at its end
 * @throws WritError INTERRUPTED at Ctrl-C, Ctrl-D, a signal, and when the terminal goes away
 */
export async function askLine(question: string, { signal, surroundings }: CommandContext): Promise<string> {
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

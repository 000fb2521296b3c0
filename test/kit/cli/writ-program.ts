// Path of the program that tests start: the bundled one that is shipped, not the output of tsc.
import { join } from 'node:path';
import { readableCheckout } from '../sources/readable-checkout.js';

/** `dist/writ/main.js`, which `bin` of package.json names. */
export const writProgram = join(import.meta.dirname, '..', '..', '..', 'writ', 'main.js');

/** @returns the program as another user may read it, for a command such as `setpriv` that changes the user */
export function writProgramUnder(under: readonly string[]): string {
  return under.includes('setpriv') ? join(readableCheckout(), 'dist/writ/main.js') : writProgram;
}

// Where the program is that tests start: the one that is shipped, bundled by the build, and not what tsc wrote.
import { join } from 'node:path';
import { readableCheckout } from '../sources/readable-checkout.js';

/** `dist/writ/main.js`, which `bin` of package.json names. */
export const writProgram = join(import.meta.dirname, '..', '..', '..', 'writ', 'main.js');

/** The program as a command may read it that becomes another user, as `setpriv` does. */
export function writProgramUnder(under: readonly string[]): string {
  return under.includes('setpriv') ? join(readableCheckout(), 'dist/writ/main.js') : writProgram;
}

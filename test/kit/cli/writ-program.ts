// Where the program is that tests start: the one that is shipped, bundled by the build, and not what tsc wrote.
import { join } from 'node:path';

/** `dist/writ/main.js`, which `bin` of package.json names. */
export const writProgram = join(import.meta.dirname, '..', '..', '..', 'writ', 'main.js');

// Removes the compiled output, so that no output of a deleted source file remains in dist/.
import { rmSync } from 'node:fs';

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });

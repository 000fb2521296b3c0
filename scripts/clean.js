// Removes the compiled output, so that a deleted source file cannot live on in dist/.
import { rmSync } from 'node:fs';

rmSync(new URL('../dist', import.meta.url), { recursive: true, force: true });

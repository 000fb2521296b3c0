// What tsc leaves to be done: packages in one file each, the validators of our own schemas, and the program that is shipped.
import { fileURLToPath } from 'node:url';
import { bundleProgram } from './bundle-program.js';

await import('./join-packages.js');
await import('./compile-schemas.js');
await bundleProgram(fileURLToPath(new URL('..', import.meta.url)));

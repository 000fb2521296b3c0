// What tsc leaves to be done: packages in one file each, the validators of our own schemas, and the mode of the program: tsc writes 0644, and `npx writ`
// would say "Permission denied" after every rebuild.
import { chmodSync } from 'node:fs';

await import('./join-packages.js');
await import('./compile-schemas.js');
chmodSync(new URL('../dist/src/cli/main.js', import.meta.url), 0o755);

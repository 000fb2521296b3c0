// tsc writes 0644: without this `npx writ` says "Permission denied" after every rebuild.
import { chmodSync, existsSync } from 'node:fs';

const entry = new URL('../dist/src/cli/main.js', import.meta.url);
if (existsSync(entry)) chmodSync(entry, 0o755);

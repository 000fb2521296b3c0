// Joins the used parts of some packages into one file each, with a map beside it: a start reads one file instead of a hundred,
// and no unused code. scripts/bundle-program.js adds them to the program.
import { readdirSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const directory = fileURLToPath(new URL('packages/', import.meta.url));
const entryPoints = readdirSync(directory).filter((name) => name.endsWith('.js'));

await build({
  entryPoints: entryPoints.map((name) => `${directory}${basename(name)}`),
  outdir: fileURLToPath(new URL('../dist/packages/', import.meta.url)),
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'inline',
  logLevel: 'warning',
  // Some are CommonJS, and ask for modules of Node.
  banner: {
    js: "import { createRequire as requireOf } from 'node:module'; const require = requireOf(import.meta.url);",
  },
});

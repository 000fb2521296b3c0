// The checkout as another user may read it: a test that runs as root starts programs of the checkout as `nobody`, and the
// checkout may lie below a directory of mode 0700, or be cloned with umask 077. Never changes the checkout.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from './source-files.js';

/** What programs of the checkout read when they run. */
const parts = ['dist', 'docs', 'bundles', 'packaging', 'node_modules', 'package.json', 'README.md'];
/** Half of node_modules, and nothing that runs as another user loads it. */
const tools = ['@biomejs', '@typescript', 'typescript', '@esbuild', 'esbuild'];
let copy: string | undefined;

/** @returns the checkout itself where every user may read it, else a copy that ends with this process */
export function readableCheckout(): string {
  if (process.getuid?.() !== 0 || isReadableByAll(join(projectRoot, 'dist/writ/main.js'))) return projectRoot;
  copy ??= makeCopy();
  return copy;
}

function isReadableByAll(path: string): boolean {
  const bits = statSync(path).isDirectory() ? 0o005 : 0o004;
  return (statSync(path).mode & bits) === bits && (path === '/' || isReadableByAll(dirname(path)));
}

/** Not in /tmp, because the sandbox of a check hides it. */
function makeCopy(): string {
  const directory = mkdtempSync('/var/tmp/writ-checkout-');
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
  const isTool = (path: string): boolean => tools.some((tool) => path.endsWith(`/node_modules/${tool}`));
  for (const part of parts.filter((name) => existsSync(join(projectRoot, name))))
    cpSync(join(projectRoot, part), join(directory, part), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !isTool(path),
    });
  execFileSync('chmod', ['-R', 'go+rX', directory]);
  return directory;
}

// A copy of the checkout for another user: a test that runs as root starts programs as `nobody`, and the checkout may be below a
// directory of mode 0700 or be cloned with umask 077. Never changes the checkout.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from './source-files.js';

/** Paths that programs of the checkout read when they run. */
const parts = ['dist', 'docs', 'bundles', 'packaging', 'node_modules', 'package.json', 'README.md'];
/** Left out: half of node_modules, which no program of another user loads. */
const tools = ['@biomejs', '@typescript', 'typescript', '@esbuild', 'esbuild'];
let copy: string | undefined;

/** @returns the checkout itself if each user may read it, otherwise a copy that is removed with this process */
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

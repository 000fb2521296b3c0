// The modules that a program loaded, from the trace of trace-imports: its files, and the modules bundled into them according
// to their source maps, which name each module.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { projectRoot } from './source-files.js';

export interface Loaded {
  /** Number of imported files without those of Node. */
  readonly files: number;
  /** Sources of Writ, as `src/cli/main.ts`. */
  readonly sources: readonly string[];
  /** Names of packages with code in a file of the program. */
  readonly joined: readonly string[];
  /** Names of packages that were loaded from node_modules. */
  readonly whole: readonly string[];
}

/** @returns the environment that records the imports of a program in a file */
export function tracingEnv(trace: string): Readonly<Record<'NODE_OPTIONS' | 'WRIT_TRACE_IMPORTS', string>> {
  const hook = new URL('./trace-imports.js', import.meta.url).href;
  return { NODE_OPTIONS: `--import=${hook}`, WRIT_TRACE_IMPORTS: trace };
}

/** @param trace the file given to `tracingEnv` */
export function loadedSources(trace: string): Loaded {
  const urls = new Set(readFileSync(trace, 'utf8').trim().split('\n'));
  const paths = [...urls]
    .filter((url) => url.startsWith('file:') && !url.includes('/kit/sources/'))
    .map((url) => fileURLToPath(url));
  const inside = paths.flatMap(bundledIn);
  return {
    files: paths.length,
    sources: inside.filter((path) => packageOf(path) === undefined).sort(),
    joined: packagesOf(inside),
    whole: packagesOf(paths),
  };
}

function bundledIn(path: string): string[] {
  if (packageOf(path) !== undefined) return [];
  const map = `${path}.map`;
  if (!existsSync(map)) throw new Error(`${path} has no map`);
  const { sources } = JSON.parse(readFileSync(map, 'utf8')) as { readonly sources: readonly string[] };
  return sources.map((source) => join(path, '..', source).replace(`${projectRoot}/`, ''));
}

function packagesOf(paths: readonly string[]): string[] {
  return [...new Set(paths.flatMap((path) => packageOf(path) ?? []))].sort();
}

function packageOf(path: string): string | undefined {
  return /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1];
}

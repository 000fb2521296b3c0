// What a program has loaded, by the trace that trace-imports wrote: its files, and by their maps what has been bundled
// into them. Nothing can hide in a file of the program that its map does not name.
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { projectRoot } from './source-files.js';

export interface Loaded {
  /** How many files were read by import, Node's own left out. */
  readonly files: number;
  /** Our own, as `src/cli/main.ts`. */
  readonly sources: readonly string[];
  /** By name, those whose code is in a file of the program. */
  readonly joined: readonly string[];
  /** By name, those that were loaded from where they are installed: each is many files. */
  readonly whole: readonly string[];
}

/** To run a program with: what it loads is noted in a file. */
export function tracingEnv(trace: string): Readonly<Record<'NODE_OPTIONS' | 'WRIT_TRACE_IMPORTS', string>> {
  const hook = new URL('./trace-imports.js', import.meta.url).href;
  return { NODE_OPTIONS: `--import=${hook}`, WRIT_TRACE_IMPORTS: trace };
}

/** @param trace the file of `tracingEnv` */
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

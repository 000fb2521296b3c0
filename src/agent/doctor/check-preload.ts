// `writ doctor`, check `libraries`: a missing library in `ld.so.preload` makes the dynamic loader warn on stderr in every program of the
// host. Writ removes these lines before it interprets an output; the tools of a daemon may not.
import * as fs from 'node:fs';
import { join } from 'node:path';
import { isSystemError } from '../../core/errors.js';
import { readSmallFile } from '../../platform/read-file.js';
import type { Checks, DoctorContext } from './doctor-context.js';
import { type Judged, warn } from './judged.js';

const maxBytes = 65_536;
const maxNamed = 3;

/**
 * @returns the check `libraries`
 * @param etc the directory of ld.so.preload, `/etc` outside of tests
 */
export function preloadChecks({ etc }: Pick<DoctorContext, 'etc'>): Checks {
  const path = join(etc, 'ld.so.preload');
  return [['libraries', () => judgePreload(path, missingLibraries(readText(path)))]];
}

/** @returns no finding if every library can be opened: most hosts have no such file */
function judgePreload(path: string, missing: readonly string[]): readonly Judged[] {
  if (missing.length === 0) return [];
  const named = missing.slice(0, maxNamed).join(', ');
  const more = missing.length > maxNamed ? ` and ${missing.length - maxNamed} more` : '';
  const text = `${path} names ${named}${more}, which cannot be opened: the dynamic loader warns of it in each program`;
  return [warn(text, `correct ${path}`)];
}

/**
 * @param text of the file: libraries with white space or colons between them
 * @returns the paths that cannot be opened. Names without a slash or with a `$` are skipped, because only the loader can resolve them
 */
function missingLibraries(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/#.*/, ''));
  const paths = lines.flatMap((line) => line.split(/[\s:]+/)).filter((one) => one.startsWith('/'));
  return [...new Set(paths)].filter((one) => !one.includes('$') && !canOpen(one));
}

function canOpen(path: string): boolean {
  try {
    fs.accessSync(path, fs.constants.R_OK);
    return true;
  } catch (error) {
    if (!isSystemError(error)) throw error;
    return false;
  }
}

function readText(path: string): string {
  const read = readSmallFile(path, { maxBytes });
  return read.kind === 'read' ? read.bytes.toString('utf8') : '';
}

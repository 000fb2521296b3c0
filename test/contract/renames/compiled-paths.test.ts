// JavaScript that runs beside the compiled program names compiled files by path, which no compiler checks: each has its source.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot } from '../../kit/sources/source-files.js';

const folders = ['scripts', 'site', 'test/browser', 'test/packages'];

interface CompiledPath {
  readonly user: string;
  /** Below the project, without its extension. */
  readonly source: string;
}

function compiledPathsIn(folder: string): CompiledPath[] {
  return readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((path) => path.endsWith('.js') && !path.includes('node_modules'))
    .flatMap((user) =>
      [...readFileSync(join(projectRoot, user), 'utf8').matchAll(compiled)].map(([, source = '']) => ({
        user,
        source,
      })),
    );
}

const compiled =
  /'(?:(?:\.\.\/)+dist\/|dist\/)?((?:src|test\/(?:kit|truth|fuzz)|bench|demo)\/[\w./-]+)\.js'/g;

describe('a compiled file that JavaScript names', () => {
  const paths = folders.flatMap(compiledPathsIn);

  it('has a source', () => {
    const missing = paths.filter(
      ({ source }) => !['.ts', '.tsx'].some((extension) => existsSync(join(projectRoot, source + extension))),
    );
    assert.deepEqual(missing, []);
  });

  it('is found in scripts, the site, and tests of pages and packages', () => {
    for (const folder of folders)
      assert.ok(
        paths.some(({ user }) => user.startsWith(folder)),
        folder,
      );
  });
});

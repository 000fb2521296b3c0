// Packages that the build joins into one file each: each has the values of its types, and the program imports only these files.
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot, readSources } from '../kit/sources/source-files.js';

interface PackageJson {
  readonly imports: Readonly<Record<string, { readonly types: string; readonly default: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const { imports, dependencies } = JSON.parse(
  readFileSync(join(projectRoot, 'package.json'), 'utf8'),
) as PackageJson;
const joined = Object.entries(imports);

/** @returns the names of the values that a declaration file exports, without types */
function declared(path: string): string[] {
  const [, list = ''] = /export \{([^}]*)\}/.exec(readFileSync(join(projectRoot, path), 'utf8')) ?? [];
  const names = list.split(',').map((name) => name.trim());
  return names.filter((name) => name !== '' && !name.startsWith('type ')).sort();
}

describe('joined packages', () => {
  it('are dependencies, each with its list', () => {
    for (const [name, { types, default: path }] of joined) {
      const plain = name.slice(1);
      assert.ok(dependencies[plain] !== undefined, `${plain} would vanish from audits`);
      assert.deepEqual([types, path], [`./scripts/packages/${plain}.d.ts`, `./dist/packages/${plain}.js`]);
    }
    const lists = readdirSync(join(projectRoot, 'scripts/packages')).filter((name) => name.endsWith('.js'));
    assert.deepEqual(lists.map((name) => `#${name.slice(0, -3)}`).sort(), Object.keys(imports).sort());
  });

  it('have every value that their types promise, and a map beside them', async () => {
    for (const [, { types, default: path }] of joined) {
      const whole = join(projectRoot, path);
      const there = Object.keys((await import(whole)) as object);
      assert.deepEqual(there.sort(), declared(types), path);
      assert.ok(existsSync(`${whole}.map`), path);
    }
  });

  it('are imported by their joined name alone, because the whole package would be a second copy', () => {
    const names = joined.map(([name]) => name.slice(1));
    const beside = readSources().flatMap(({ path, imports: lines }) =>
      lines.filter(({ specifier }) => names.includes(specifier)).map(() => path),
    );
    assert.deepEqual(beside, []);
  });
});

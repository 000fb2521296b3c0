// The rules of the architecture: the direction of imports, the purity of core, the form of files, and the packages of an
// install. A failure prints the reason of its rule.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { matchesFile } from '../../kit/assert/golden.js';
import {
  packageOf,
  projectRoot,
  readSources,
  type SourceFile,
  sourceFile,
} from '../../kit/sources/source-files.js';
import { againstDirection, below, hold, layerOf } from './layers.js';

const sources = readSources();

describe('direction of imports', () => {
  it('is downwards only', () => {
    const because =
      'decisions must not depend on effects, and code that acts on a host must not contain secrets: ' +
      'agent and server never import the publisher';
    hold(againstDirection(sources), because);
  });

  it('knows every folder', () => {
    const unknown = sources.map(({ path }) => layerOf(path)).filter((layer) => below[layer] === undefined);
    hold(unknown, 'a folder without a place in the direction of imports has no rule');
  });

  it('reaches files that exist', () => {
    // A file that the build generates has its declaration at the future path.
    const known = new Set(sources.map(({ path }) => path.replace(/\.d\.ts$/, '.ts')));
    const missing = sources.flatMap(({ path, imports }) =>
      imports
        .filter(({ file }) => file !== undefined && !known.has(file))
        .map(({ file }) => `${path} -> ${file}`),
    );
    hold(missing, 'this test reads imports as text, and must not misread them');
  });

  it('has no computed name', () => {
    // This file loads ajv by its name, in a function that cannot wait for an import.
    const loader = 'core/schema/own-schemas.ts';
    const hidden = sources
      .filter(({ path }) => path !== loader)
      .filter(({ code }) => /\bimport\s*\(\s*[^'"\s]|\brequire\s*\(|\bcreateRequire\b/.test(code))
      .map(({ path }) => path);
    hold(hidden, 'no rule can check an import by a computed name');
  });

  it('is reported if an import breaks it', () => {
    const upward = sourceFile('agent/x.ts', "import { sign } from '../publisher/keys.js';");
    assert.deepEqual(againstDirection([upward]), ['agent/x.ts imports publisher/keys.ts']);
    const online = sourceFile(
      'server/x.ts',
      "import { sign } from '../publisher/signing/online-signing.js';",
    );
    assert.deepEqual(againstDirection([online]), []);
    const sdk = sourceFile('sdk/x.ts', "import type { Clock } from '../platform/time/clock.js';");
    assert.deepEqual(againstDirection([sdk]), ['sdk/x.ts imports platform/time/clock.ts']);
  });
});

/** Decisions about a host are pure: in core, and in the `*-rules.ts` of the one module that uses them. */
const isPure = ({ path }: { readonly path: string }): boolean =>
  layerOf(path) === 'core' || /^(?:agent|platform)\/.*-rules\.ts$/.test(path);

/** @returns the file and all files that it loads; an import of types loads none */
function loadedBy(path: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  const { imports = [] } = sources.find((one) => one.path === path) ?? {};
  for (const { file, names } of imports) {
    if (file !== undefined && !/^type\b/.test(names)) loadedBy(file, seen);
  }
  return seen;
}

describe('core, and the rules of a module', () => {
  // core/schema uses node:module only to load ajv at its first use.
  const allowed = new Set(['ajv', 'yaml', 'picomatch', 'node:crypto', 'node:module']);
  const pure = new Set(sources.filter(isPure).flatMap(({ path }) => [...loadedBy(path)]));
  const loaded = sources.filter(({ path }) => pure.has(path));

  it('import nothing that reads, writes, waits or sends requests', () => {
    const foreign = loaded
      .flatMap(({ path, imports }) => imports.map((line) => ({ path, ...line })))
      .filter(({ file, specifier }) => file === undefined && !allowed.has(packageOf(specifier)))
      .map(({ path, specifier }) => `${path} imports ${specifier}`);
    hold(foreign, 'a verdict is a function of its arguments, and is tested without a disk or a network');
  });

  it('do not read the process object', () => {
    const asking = loaded.filter(({ code }) => /\bprocess\s*\./.test(code));
    hold(
      asking.map(({ path }) => path),
      'environment and platform are arguments, so that a verdict does not depend on its host',
    );
  });
});

describe('files', () => {
  it('open with a comment of 1 to 8 lines that describes their subject', () => {
    const bare = sources.filter(({ text }) => {
      const lines = text.replace(/^#!.*\n/, '').split('\n');
      const comment = lines.findIndex((line) => !line.startsWith('//'));
      return comment < 1 || comment > 8;
    });
    hold(
      bare.map(({ path }) => path),
      'the first lines show a reader whether this is the right file',
    );
  });

  it('have at most 300 lines', () => {
    const long = sources
      .filter(({ path, text }) => path !== 'core/error-codes.ts' && text.trimEnd().split('\n').length > 300)
      .map(({ path }) => path);
    hold(long, 'a file has one subject');
  });

  it('name documents that exist', () => {
    const dangling = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/(?:[\w/-]+\/)?[\w-]+\.md\b/g)]
        .filter(([name]) => !existsSync(join(projectRoot, name)))
        .map(([name]) => `${path}: ${name}`),
    );
    hold(dangling, 'a reference must have a target');
  });

  it('have no TODO', () => {
    const marked = sources.filter(({ text }) => /\b(?:TODO|FIXME|XXX)\b/.test(text));
    hold(
      marked.map(({ path }) => path),
      'a comment does not ensure that the work is done',
    );
  });
});

/** @returns each exported function without a docstring directly above it, as `FILE NAME`; an overload counts as a function */
function withoutDocstring(files: readonly Pick<SourceFile, 'path' | 'text'>[]): string[] {
  return files.flatMap(({ path, text }) =>
    [...text.matchAll(/^export (?:default )?(?:async )?function\b\*? *(\w*)/gm)]
      .filter(({ index }) => !/\/\*\*(?:(?!\*\/)[\s\S])*\*\/$/.test(text.slice(0, index).trimEnd()))
      .map(([, name]) => `${path} ${name}`),
  );
}

describe('each exported function', () => {
  it('has a docstring', () => {
    const because =
      'the docstring states the result, its units, the empty case and the errors, which no signature shows';
    hold(withoutDocstring(sources), because);
  });

  it('is reported if it has none', () => {
    const found = (text: string): string[] => withoutDocstring([{ path: 'x.ts', text }]);
    assert.deepEqual(found('/** Reads. */\nexport function a() {}\n\nexport async function b() {}\n'), [
      'x.ts b',
    ]);
    assert.deepEqual(found('/* No docstring. */\nexport function* c() {}\n'), ['x.ts c']);
    assert.deepEqual(found('/** Of another. */\nconst d = 1;\nexport async function* e() {}\n'), ['x.ts e']);
    assert.deepEqual(found('/**\n * Reads.\n */\nexport default function f() {}\nfunction g() {}\n'), []);
  });
});

/** Names of every package that a production install brings, from the lock file. */
function installedPackages(): string[] {
  const lock = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; optional?: boolean; peer?: boolean }>;
  };
  const names = Object.entries(lock.packages)
    .filter(([path, { dev }]) => path !== '' && dev !== true)
    .map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
  return [...new Set(names)].sort();
}

function packagesOf(layer: string): string[] {
  const names = sources
    .filter(({ path }) => layerOf(path) === layer)
    .flatMap(({ imports }) => imports)
    .filter(({ file, specifier }) => file === undefined && !specifier.startsWith('node:'))
    .map(({ specifier }) => packageOf(specifier));
  return [...new Set(names)].sort();
}

describe('dependencies', () => {
  it('are those of the list, by folder and with their own dependencies', () => {
    const folders = Object.keys(below).map((layer) => `${layer}: ${packagesOf(layer).join(' ') || '-'}`);
    const lines = [
      '# packages that each folder imports',
      ...folders,
      '',
      '# packages that an install brings',
    ];
    matchesFile('test/golden/dependencies.txt', `${[...lines, ...installedPackages()].join('\n')}\n`);
  });

  it('are declared where they are used', () => {
    const { dependencies, optionalDependencies } = JSON.parse(
      readFileSync(join(projectRoot, 'package.json'), 'utf8'),
    ) as Record<'dependencies' | 'optionalDependencies', Record<string, string>>;
    const declared = { ...dependencies, ...optionalDependencies };
    const undeclared = Object.keys(below)
      .flatMap(packagesOf)
      .filter((name) => declared[name] === undefined);
    hold(undeclared, 'a package that only another one brings can vanish with its next version');
  });
});

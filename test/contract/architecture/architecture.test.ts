// Holds the sources to the architecture: who may import whom, what core never does, how files look, and what an install
// brings. Every rule has its reason, which a failure prints.
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
      'what decides must not depend on what acts, and what acts on a host must not carry secrets: ' +
      'agent and server never import the publisher';
    hold(againstDirection(sources), because);
  });

  it('knows every folder', () => {
    const unknown = sources.map(({ path }) => layerOf(path)).filter((layer) => below[layer] === undefined);
    hold(unknown, 'a folder without a place in the direction of imports is held to nothing');
  });

  it('reaches files that exist', () => {
    // What the build makes is declared where it will be.
    const known = new Set(sources.map(({ path }) => path.replace(/\.d\.ts$/, '.ts')));
    const missing = sources.flatMap(({ path, imports }) =>
      imports
        .filter(({ file }) => file !== undefined && !known.has(file))
        .map(({ file }) => `${path} -> ${file}`),
    );
    hold(missing, 'this test reads imports as text, and must not misread them');
  });

  it('can be read as text', () => {
    // It loads ajv by its name, in a function that cannot wait for an import.
    const loader = 'core/schema/own-schemas.ts';
    const hidden = sources
      .filter(({ path }) => path !== loader)
      .filter(({ code }) => /\bimport\s*\(\s*[^'"\s]|\brequire\s*\(|\bcreateRequire\b/.test(code))
      .map(({ path }) => path);
    hold(hidden, 'an import by a computed name is held to no rule');
  });

  it('is seen to be broken', () => {
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

/** What decides about a host is pure wherever it stands: in core, and in the rules beside the one room that uses them. */
const isPure = ({ path }: { readonly path: string }): boolean =>
  layerOf(path) === 'core' || /^(?:agent|platform)\/.*-rules\.ts$/.test(path);

/** The file and all that it loads: types load nothing. */
function loadedBy(path: string, seen = new Set<string>()): ReadonlySet<string> {
  if (seen.has(path)) return seen;
  seen.add(path);
  const { imports = [] } = sources.find((one) => one.path === path) ?? {};
  for (const { file, names } of imports) {
    if (file !== undefined && !/^type\b/.test(names)) loadedBy(file, seen);
  }
  return seen;
}

describe('core, and the rules of a room', () => {
  // node:module only loads ajv, in core/schema, when it is needed after all.
  const allowed = new Set(['ajv', 'yaml', 'picomatch', 'node:crypto', 'node:module']);
  const pure = new Set(sources.filter(isPure).flatMap(({ path }) => [...loadedBy(path)]));
  const loaded = sources.filter(({ path }) => pure.has(path));

  it('import nothing that reads, writes, waits or asks', () => {
    const foreign = loaded
      .flatMap(({ path, imports }) => imports.map((line) => ({ path, ...line })))
      .filter(({ file, specifier }) => file === undefined && !allowed.has(packageOf(specifier)))
      .map(({ path, specifier }) => `${path} imports ${specifier}`);
    hold(foreign, 'a verdict is a function of its arguments, and is tested without a disk or a network');
  });

  it('do not ask the process', () => {
    const asking = loaded.filter(({ code }) => /\bprocess\s*\./.test(code));
    hold(
      asking.map(({ path }) => path),
      'environment and platform are arguments, or a verdict depends on where it is given',
    );
  });
});

describe('files', () => {
  it('open with a comment of 1 to 8 lines that says what they own', () => {
    const bare = sources.filter(({ text }) => {
      const lines = text.replace(/^#!.*\n/, '').split('\n');
      const comment = lines.findIndex((line) => !line.startsWith('//'));
      return comment < 1 || comment > 8;
    });
    hold(
      bare.map(({ path }) => path),
      'a reader learns from the first lines whether this is the file to read',
    );
  });

  it('have at most 300 lines', () => {
    const long = sources
      .filter(({ path, text }) => path !== 'core/error-codes.ts' && text.trimEnd().split('\n').length > 300)
      .map(({ path }) => path);
    hold(long, 'a file has one subject');
  });

  it('point at documents that are there', () => {
    const dangling = sources.flatMap(({ path, text }) =>
      [...text.matchAll(/(?:[\w/-]+\/)?[\w-]+\.md\b/g)]
        .filter(([name]) => !existsSync(join(projectRoot, name)))
        .map(([name]) => `${path}: ${name}`),
    );
    hold(dangling, 'a reader who is sent somewhere must arrive');
  });

  it('leave nothing for later', () => {
    const marked = sources.filter(({ text }) => /\b(?:TODO|FIXME|XXX)\b/.test(text));
    hold(
      marked.map(({ path }) => path),
      'a promise in a comment is kept by nobody',
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

  it('is found without one', () => {
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
  it('are those of the list, by folder and with all that they bring', () => {
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

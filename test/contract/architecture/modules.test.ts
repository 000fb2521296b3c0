// The rules of modules: imports have one direction, other modules import only public files, and no folder has too many
// files.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot, readSources, sourceFile } from '../../kit/sources/source-files.js';
import { hold } from './layers.js';
import {
  fileGraph,
  fullFolders,
  importsOfPrivateFiles,
  moduleGraph,
  moduleOf,
  onCycles,
  unusedPublicFiles,
} from './modules.js';
import { publicFiles } from './public-files.js';

const sources = readSources();

function codeIn(folder: string): string[] {
  return readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(folder, name));
}

/** True when its README is short, has the path of the module as title, and names an existing file to begin with. */
function hasReadme(module: string): boolean {
  const files = readdirSync(join(projectRoot, 'src', module));
  if (!files.includes('README.md')) return false;
  const text = readFileSync(join(projectRoot, 'src', module, 'README.md'), 'utf8');
  const begin = /Begin\s+with\s+\[[\w.-]+\]\(([\w.-]+)\)/.exec(text)?.[1] ?? '';
  return text.startsWith(`# ${module}\n`) && files.includes(begin) && text.trimEnd().split('\n').length <= 12;
}

describe('modules', () => {
  it('import each other in one direction', () => {
    const because = 'two modules that need each other are one, and neither can be read or changed alone';
    hold(onCycles(moduleGraph(sources)), because);
  });

  it('have no cycle of files inside either, types included', () => {
    hold(onCycles(fileGraph(sources)), 'a type that two files need has a file of its own below both');
  });

  it('import only public files of each other', () => {
    hold(
      importsOfPrivateFiles(sources, publicFiles),
      'the internals of a module may change without a change of its users',
    );
  });

  it('have no unused public file', () => {
    hold(
      unusedPublicFiles(sources, publicFiles),
      'a list with unused files does not show the real interface',
    );
  });

  it('describe in a README their subject, their effects, and the file to begin with', () => {
    const silent = [...new Set(sources.map(({ path }) => moduleOf(path)))].filter(
      (module) => !hasReadme(module),
    );
    hold(silent, 'each reader of a folder has these questions');
  });

  it('have at most 20 files, in src and in test', () => {
    const full = fullFolders([...codeIn('src'), ...codeIn('test')]);
    hold(full, 'a folder with more has more than one subject');
  });
});

describe('the rules of modules', () => {
  const a = sourceFile('agent/a/one.ts', "import { b } from '../b/two.js';");
  const b = sourceFile('agent/b/two.ts', "import type { C } from '../c/three.js';");
  const c = sourceFile('agent/c/three.ts', "import type { D } from './four.js';");
  const back = sourceFile('agent/c/four.ts', "import type { A } from '../a/one.js';");

  it('report a cycle of three modules, and none if an import is missing', () => {
    assert.deepEqual(onCycles(moduleGraph([a, b, c, back])), ['agent/a', 'agent/b', 'agent/c']);
    assert.deepEqual(onCycles(moduleGraph([a, b, c])), []);
  });

  it('report a cycle of files in one module', () => {
    const three = sourceFile('agent/c/three.ts', "import { d } from './four.js';");
    const four = sourceFile('agent/c/four.ts', "import type { C } from './three.js';");
    assert.deepEqual(onCycles(fileGraph([three, four])), ['agent/c/four.ts', 'agent/c/three.ts']);
    assert.deepEqual(onCycles(moduleGraph([three, four])), []);
  });

  it('report an import of a private file, and an unused public file', () => {
    const narrow = { 'agent/b': ['three'] };
    assert.deepEqual(importsOfPrivateFiles([a, b], { ...narrow, 'agent/c': ['three'] }), [
      'agent/a/one.ts imports agent/b/two.ts',
    ]);
    assert.deepEqual(unusedPublicFiles([a, b], narrow), ['agent/b/three.ts']);
    assert.deepEqual(unusedPublicFiles([a, b], { 'agent/b': ['two'] }), []);
  });

  it('report a folder with too many files', () => {
    const paths = Array.from({ length: 21 }, (_, index) => `agent/x/file-${index}.ts`);
    assert.deepEqual(fullFolders(paths), ['agent/x: 21']);
    assert.deepEqual(fullFolders(paths.slice(1)), []);
  });
});

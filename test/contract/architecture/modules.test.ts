// Holds the sources and the tests to rooms with doors: arrows go one way, others enter by the face, and no folder is a
// drawer for everything.
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { projectRoot, readSources, sourceFile } from '../../kit/sources/source-files.js';
import { faces } from './faces.js';
import { hold } from './layers.js';
import { fileGraph, fullFolders, onCircles, pastFaces, roomGraph, roomOf, unusedFaces } from './rooms.js';

const sources = readSources();

function codeIn(folder: string): string[] {
  return readdirSync(join(projectRoot, folder), { recursive: true, encoding: 'utf8' })
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => join(folder, name));
}

/** Short, under the name of the room, and with a file to begin with that is there. */
function saysWhereToBegin(room: string): boolean {
  const files = readdirSync(join(projectRoot, 'src', room));
  if (!files.includes('README.md')) return false;
  const text = readFileSync(join(projectRoot, 'src', room, 'README.md'), 'utf8');
  const begin = /Begin\s+with\s+\[[\w.-]+\]\(([\w.-]+)\)/.exec(text)?.[1] ?? '';
  return text.startsWith(`# ${room}\n`) && files.includes(begin) && text.trimEnd().split('\n').length <= 12;
}

describe('rooms', () => {
  it('import each other in one direction', () => {
    const because = 'two rooms that need each other are one, and neither can be read, or changed, alone';
    hold(onCircles(roomGraph(sources)), because);
  });

  it('have no circle of files inside either, types included', () => {
    hold(onCircles(fileGraph(sources)), 'a type that two files need has a file of its own below both');
  });

  it('are entered by their face', () => {
    hold(pastFaces(sources, faces), 'what a room does inside may change without a word to anybody');
  });

  it('show in their face nothing that nobody uses', () => {
    hold(unusedFaces(sources, faces), 'a face that is wider than its use tells a reader nothing');
  });

  it('say in a README what they are, what they may touch, and where to begin', () => {
    const silent = [...new Set(sources.map(({ path }) => roomOf(path)))].filter(
      (room) => !saysWhereToBegin(room),
    );
    hold(silent, 'whoever opens a folder has a question, and it is the same each time');
  });

  it('have at most 20 files, in src and in test', () => {
    const full = fullFolders([...codeIn('src'), ...codeIn('test')]);
    hold(full, 'a folder with more has more than one subject');
  });
});

describe('the rules of rooms', () => {
  const a = sourceFile('agent/a/one.ts', "import { b } from '../b/two.js';");
  const b = sourceFile('agent/b/two.ts', "import type { C } from '../c/three.js';");
  const c = sourceFile('agent/c/three.ts', "import type { D } from './four.js';");
  const back = sourceFile('agent/c/four.ts', "import type { A } from '../a/one.js';");

  it('see a circle through three rooms, and none where an arrow is missing', () => {
    assert.deepEqual(onCircles(roomGraph([a, b, c, back])), ['agent/a', 'agent/b', 'agent/c']);
    assert.deepEqual(onCircles(roomGraph([a, b, c])), []);
  });

  it('see a circle of files in one room', () => {
    const three = sourceFile('agent/c/three.ts', "import { d } from './four.js';");
    const four = sourceFile('agent/c/four.ts', "import type { C } from './three.js';");
    assert.deepEqual(onCircles(fileGraph([three, four])), ['agent/c/four.ts', 'agent/c/three.ts']);
    assert.deepEqual(onCircles(roomGraph([three, four])), []);
  });

  it('see an import past a face, and a face that nobody uses', () => {
    const narrow = { 'agent/b': ['three'] };
    assert.deepEqual(pastFaces([a, b], { ...narrow, 'agent/c': ['three'] }), [
      'agent/a/one.ts imports agent/b/two.ts',
    ]);
    assert.deepEqual(unusedFaces([a, b], narrow), ['agent/b/three.ts']);
    assert.deepEqual(unusedFaces([a, b], { 'agent/b': ['two'] }), []);
  });

  it('see a folder that is too full', () => {
    const paths = Array.from({ length: 21 }, (_, index) => `agent/x/file-${index}.ts`);
    assert.deepEqual(fullFolders(paths), ['agent/x: 21']);
    assert.deepEqual(fullFolders(paths.slice(1)), []);
  });
});

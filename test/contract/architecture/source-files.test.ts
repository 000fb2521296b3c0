// The reader of the sources, which every rule of the architecture uses.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sourceFile } from '../../kit/sources/source-files.js';

describe('the reader of imports', () => {
  const read = (text: string, path = 'agent/x.ts'): string[] =>
    sourceFile(path, text).imports.map(({ specifier, file }) => file ?? specifier);

  it('sees every form of import', () => {
    assert.deepEqual(read("import { a } from '../core/a.js';"), ['core/a.ts']);
    assert.deepEqual(read("import {\n  a,\n  type B,\n} from './b.js';"), ['agent/b.ts']);
    assert.deepEqual(read("import type { A } from 'undici';"), ['undici']);
    assert.deepEqual(read("import * as fs from 'node:fs';"), ['node:fs']);
    assert.deepEqual(read("export type { Logger } from 'pino';"), ['pino']);
    assert.deepEqual(read("import './effect.js';"), ['agent/effect.ts']);
    assert.deepEqual(read("const { x } = await import('../cli/x.js');"), ['cli/x.ts']);
    assert.deepEqual(read("import a from 'a';\nimport b from 'b';"), ['a', 'b']);
  });

  it('sees no import in a comment', () => {
    assert.deepEqual(read("// import { a } from 'tar';\n/* import 'b'; */"), []);
  });

  it('sees code in templates, and none in strings and comments', () => {
    const { code } = sourceFile('agent/x.ts', "const a = 'Date.now()'; // Date.now()\nconst b = `run()`;");
    assert.equal(code.includes('Date.now'), false);
    assert.equal(code.includes('run()'), true);
  });
});

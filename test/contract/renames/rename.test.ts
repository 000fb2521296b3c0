// scripts/rename.js on a small project: what names a symbol, a file or a test is renamed with it, and a list that cannot be done
// whole changes nothing.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { type TempDir, tempDir } from '../../kit/disk/temp-dir.js';
import { writeTree } from '../../kit/disk/write-tree.js';
import { needs } from '../../kit/programs/real-programs.js';
import { projectRoot } from '../../kit/sources/source-files.js';

interface RenameTool {
  rename(root: string, list: string): { readonly changed: number; readonly left: readonly string[] };
}

const { rename } = (await import(join(projectRoot, 'scripts/rename.js'))) as RenameTool;

const ofOne = { file: 'src/a/one.ts', before: 'return readAt(n) + 1;', after: 'return readAt(n);' };
const mutations = [
  { id: 'M1', ...ofOne, test: 'test/one.test.ts', name: 'reads twice' },
  { id: 'M2', ...ofOne, test: 'test/two.test.ts', name: 'once' },
  // Of two members with one name.
  {
    id: 'M3',
    file: 'src/a/part.ts',
    before: 'depth: 1;\n  other: { depth: 1 }',
    after: '',
    test: 'test/two.test.ts',
    name: 'once',
  },
];

function projectIn(dir: TempDir): (path: string) => string {
  writeTree(dir.path, {
    'tsconfig.json': JSON.stringify({
      compilerOptions: { module: 'nodenext', target: 'es2022', noLib: true, types: [] },
      include: ['src/**/*.ts', 'test/**/*.ts'],
    }),
    'package.json': '{ "type": "module" }',
    'src/a/one.ts':
      '/** As readAt does. */\nexport function readAt(n: number): number {\n  return n;\n}\n' +
      'export function more(n: number): number {\n  return readAt(n) + 1;\n}\n' +
      'export interface Part {\n  readonly depth: number;\n}\nexport interface Other {\n  readonly depth: number;\n}\n',
    'src/a/part.ts': 'export interface Depths {\n  depth: 1;\n  other: { depth: 1 };\n}\n',
    'src/b/two.ts':
      "import { readAt, type Part } from '../a/one.js';\nexport const two = (part: Part): number => readAt(part.depth);\n",
    'test/one.test.ts':
      "import { more } from '../src/a/one.js';\nexport const cases = { 'reads twice': more, path: 'a/one.ts' };\n",
    'test/two.test.ts': "export const cases = ['at once', 'reads twice'];\n",
    'test/browser/a.js': "load('src/a/one.js', '../dist/src/a/one.js', 'other/a/one.js');\n",
    'docs/page.md': 'Code is in `src/a/one.ts`, not in a/one.tsx; `test/one.test.ts` "reads twice".\n',
    'test/mutations/a.json': JSON.stringify(mutations),
  });
  for (const argv of [
    ['init', '-q'],
    ['add', '-A'],
  ])
    execFileSync('git', argv, { cwd: dir.path });
  return (path) => readFileSync(dir.join(path), 'utf8');
}

describe('scripts/rename.js', needs('git', 'git'), () => {
  it('renames a symbol, a member, a file and a test with everything that names them', () => {
    using dir = tempDir();
    const textOf = projectIn(dir);
    const { changed, left } = rename(
      dir.path,
      [
        'symbol src/a/one.ts readAt scan # a comment',
        'symbol src/a/one.ts:9 depth scans',
        'test test/one.test.ts "reads twice" "scans \\"twice\\""',
        'test test/two.test.ts "at once" "at first"',
        'move src/a/one.ts src/c/scan.ts',
      ].join('\n'),
    );
    assert.equal(changed, 4);
    assert.ok(!existsSync(dir.join('src/a/one.ts')));
    assert.match(textOf('src/c/scan.ts'), /function scan\([\s\S]*return scan\(n\) \+ 1;/);
    assert.match(
      textOf('src/c/scan.ts'),
      /Part \{\n {2}readonly scans: number;\n\}\n.*Other \{\n {2}readonly depth:/,
    );
    assert.equal(
      textOf('src/b/two.ts'),
      "import { scan, type Part } from '../c/scan.js';\nexport const two = (part: Part): number => scan(part.scans);\n",
    );
    assert.match(textOf('test/one.test.ts'), /'scans "twice"': more, path: 'c\/scan\.ts'/);
    assert.match(
      textOf('docs/page.md'),
      /`src\/c\/scan\.ts`, not in a\/one\.tsx; `test\/one\.test\.ts` "scans "twice""/,
    );
    assert.equal(
      textOf('test/browser/a.js'),
      "load('src/c/scan.js', '../dist/src/c/scan.js', 'other/a/one.js');\n",
    );
    const ofScan = { file: 'src/c/scan.ts', before: 'return scan(n) + 1;', after: 'return scan(n);' };
    assert.deepEqual(JSON.parse(textOf('test/mutations/c.json')), [
      { id: 'M1', ...ofScan, test: 'test/one.test.ts', name: 'scans "twice"' },
      { id: 'M2', ...ofScan, test: 'test/two.test.ts', name: 'at first' },
    ]);
    assert.deepEqual(
      left.filter((line) => line.includes('readAt')),
      ['src/c/scan.ts:1:/** As readAt does. */'],
    );
  });

  for (const [what, list, message] of [
    ['declares nothing of that name', 'symbol src/a/one.ts lost found', /declares no lost/],
    ['declares the name in several lines', 'symbol src/a/one.ts depth scan', /lines 9, 12: choose one/],
    ['has the new name already', 'symbol src/a/one.ts readAt more', /declares more already/],
    ['has a mutation that would not apply', 'symbol src/a/part.ts:2 depth width', /not apply any more: M3/],
    ['was moved before', 'move src/a/one.ts src/c/one.ts\nsymbol src/c/one.ts more moar', /moves come last/],
    ['is asked for something else', 'delete src/a/one.ts', /not a change/],
  ] as const) {
    it(`changes nothing where a file ${what}`, () => {
      using dir = tempDir();
      const textOf = projectIn(dir);
      assert.throws(() => rename(dir.path, `symbol src/b/two.ts two second\n${list}`), message);
      assert.match(textOf('src/b/two.ts'), /const two =/);
      assert.deepEqual(JSON.parse(textOf('test/mutations/a.json')), mutations);
    });
  }
});

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  type DocumentFormat,
  formatOf,
  readPolicyDocument,
} from '../../../../src/agent/checks/document-rules.js';

function read(text: string | Buffer, format: DocumentFormat = 'yaml') {
  return readPolicyDocument(Buffer.from(text), format, 20);
}

function data(text: string, format: DocumentFormat = 'yaml'): unknown {
  const document = read(text, format);
  assert.equal(document.kind, 'data', JSON.stringify(document));
  return document.kind === 'data' ? document.data : undefined;
}

function places(text: string | Buffer, format: DocumentFormat = 'yaml'): string[] {
  const document = read(text, format);
  assert.equal(document.kind, 'mistakes');
  return document.kind === 'mistakes' ? document.problems.map(({ line, column }) => `${line}:${column}`) : [];
}

describe('formatOf', () => {
  it('depends on the extension', () => {
    assert.equal(formatOf('a/b.json'), 'json');
    assert.equal(formatOf('a/b.yaml'), 'yaml');
    assert.equal(formatOf('a/b.policy'), 'yaml');
  });
});

describe('a YAML document', () => {
  it('becomes data', () => {
    assert.deepEqual(data('a: [1, yes, "x"]\nb: {c: null}\n'), { a: [1, 'yes', 'x'], b: { c: null } });
    assert.deepEqual(data(''), null);
  });

  it('has a key __proto__ as a normal key', () => {
    const value = data('__proto__: {admin: true}\n') as object;
    assert.equal((value as { admin?: boolean }).admin, undefined);
    assert.ok(Object.hasOwn(value, '__proto__'));
  });

  const broken: Readonly<Record<string, readonly [string, string]>> = {
    'a wrong indentation': ['a: 1\nb:\n  c: 1\n d: 2\n', '4:1'],
    'a key twice': ['a: 1\nb: 2\na: 3\n', '3:1'],
    'a bracket without end': ['a: [1, 2\nb: 3\n', '2:1'],
    'a second document': ['a: 1\n---\nb: 2\n', '2:1'],
    'a tag of its own': ['a: !python/object x\n', '1:4'],
    'an unknown alias': ['a: *nobody\n', '1:1'],
    'a list as a key': ['a: 1\n? [x, y]\n: 2\n', '2:3'],
    'a map as a key': ['a:\n  {{b: 1}: 2}\n', '2:4'],
    'an alias as a key, which may be the second of its name': ['{&a x: 1,\n  *a : 2}\n', '2:3'],
    'a tab as indentation': ['a:\n\tb: 1\n', '2:1'],
  };
  for (const [name, [text, place]] of Object.entries(broken)) {
    it(`is refused with ${name}, at its place`, () => {
      assert.equal(places(text)[0], place);
    });
  }

  it('is refused if aliases multiply', () => {
    const lines = ['a: &a [x, x, x, x, x, x, x, x, x]'];
    for (const [index, name] of [...'bcdefghi'].entries()) {
      const before = 'abcdefghi'[index];
      lines.push(`${name}: &${name} [${Array(9).fill(`*${before}`).join(', ')}]`);
    }
    assert.deepEqual(places(lines.join('\n')), ['1:1']);
  });

  it('is refused if it is nested too deeply, in each notation', () => {
    assert.deepEqual(places('['.repeat(20_000)), ['1:1']);
    assert.deepEqual(places(`${'{a: '.repeat(20_000)}1`), ['1:1']);
    assert.deepEqual(places(`${'- '.repeat(20_000)}1`), ['1:1']);
    assert.deepEqual(places(`${'? '.repeat(20_000)}1`), ['1:1']);
    assert.deepEqual(
      places(Array.from({ length: 1000 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('')),
      ['1:1'],
    );
    assert.deepEqual(
      data(`${'['.repeat(150)}${']'.repeat(150)}`),
      JSON.parse(`${'['.repeat(150)}${']'.repeat(150)}`),
    );
  });

  it('is refused if aliases nest without end', () => {
    const lines = Array.from({ length: 300 }, (_, index) => `a${index}: &a${index} [*a${index - 1}]`);
    assert.deepEqual(places(['a-1: &a-1 x', ...lines].join('\n')), ['1:1']);
  });

  it('is refused if it is not UTF-8', () => {
    assert.deepEqual(places(Buffer.from([0x61, 0x3a, 0x20, 0xff])), ['1:1']);
  });

  it('has the position of a pointer, or of its nearest parent', () => {
    const document = read('a:\n  - x\n  - b~/: 1\n7: y\n');
    assert.ok(document.kind === 'data');
    assert.deepEqual(
      document
        .locate(['/a/1/b~0~1', '/a/0', '/7', '/a/9', ''])
        .map(({ line, column }) => `${line}:${column}`),
      ['3:10', '2:5', '4:4', '2:3', '1:1'],
    );
  });
});

describe('a JSON document', () => {
  it('becomes data', () => {
    assert.deepEqual(data('{"a":[1.5,"x"]}', 'json'), { a: [1.5, 'x'] });
  });

  it('is parsed as strict JSON and not as YAML', () => {
    assert.deepEqual(places('{a: 1}', 'json'), ['1:2']);
    assert.deepEqual(places('{"a": 1,\n "b": 2,\n}', 'json'), ['3:1']);
    assert.deepEqual(places('# policy\n{}', 'json'), ['1:1']);
    assert.deepEqual(places('\ufeff{}', 'json'), ['1:1']);
  });

  it('reports every duplicate member', () => {
    assert.deepEqual(places('{\n  "a": 1,\n  "a": 2,\n  "a": 3\n}', 'json'), ['3:3', '4:3']);
  });

  it('has the position of a pointer', () => {
    const document = read('{\n  "a": [\n    1,\n    "x"\n  ]\n}', 'json');
    assert.ok(document.kind === 'data');
    assert.deepEqual(
      document.locate(['/a/1', '/a', '/none']).map(({ line, column }) => `${line}:${column}`),
      ['4:5', '2:8', '1:1'],
    );
  });
});

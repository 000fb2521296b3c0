import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LineCounter } from 'yaml';
import { type YamlData, yamlData } from '../../../../src/core/text/yaml-data.js';
import { parseYaml } from '../../../../src/core/text/yaml-parse.js';

const bounds = { maxPieces: 1_000_000 };

function read(text: string): YamlData | 'mistakes' {
  const parsed = parseYaml(text, new LineCounter(), bounds);
  assert.equal(parsed.kind, 'document');
  if (parsed.kind !== 'document') return 'mistakes';
  return parsed.document.errors.length > 0 ? 'mistakes' : yamlData(parsed.document);
}

const dataOf = (text: string): unknown => {
  const value = read(text);
  return value !== 'mistakes' && value.kind === 'data' ? value.data : value;
};

describe('yamlData', () => {
  it('returns plain data', () => {
    assert.deepEqual(dataOf('a: [1, 2.5, x, "1", true, null, ~, {}]\nb:\n'), {
      a: [1, 2.5, 'x', '1', true, null, null, {}],
      b: null,
    });
    assert.equal(dataOf(''), null);
  });

  it('names members by the values of their keys', () => {
    assert.deepEqual(dataOf('1: a\ntrue: b\n? &k e\n: f\n'), {
      '1': 'a',
      true: 'b',
      e: 'f',
    });
    assert.deepEqual(dataOf('- &k e: 1\n- *k\n'), [{ e: 1 }, 'e']);
  });

  it('treats __proto__ as a name like any other', () => {
    const data = dataOf('__proto__: {polluted: true}\nconstructor: 1\n') as object;
    assert.deepEqual(Object.keys(data), ['__proto__', 'constructor']);
    assert.equal(Object.getPrototypeOf(data), Object.prototype);
  });

  it('rejects a duplicate key, whatever its type', () => {
    for (const text of ['a: 1\na: 2\n', '1: a\n"1": b\n', '{a: 1, b: {c: 1, c: 2}}', '~: 1\n"": 2\n'])
      assert.equal(read(text), 'mistakes', text);
  });

  it('rejects a duplicate key that has an anchor or is an alias', () => {
    for (const text of [
      '&a k: 1\n&b k: 2\n',
      '&a k: 1\nk: 2\n',
      '&a k: 1\n*a : 2\n',
      '? &a\n: 1\n? &b\n: 2\n',
    ])
      assert.equal(read(text), 'mistakes', text);
  });

  it('resolves an alias to the last anchor of its name before it', () => {
    assert.deepEqual(dataOf('- &a 1\n- *a\n- &a {b: 2}\n- *a\n'), [1, 1, { b: 2 }, { b: 2 }]);
  });

  it('rejects an alias of an unknown anchor, of a later one, and of an enclosing one', () => {
    for (const text of ['- *a\n', '- *a\n- &a 1\n', '&a [*a]\n'])
      assert.deepEqual(read(text), { kind: 'aliases' }, text);
  });

  it('rejects aliases that expand to too many values', () => {
    const line = (index: number): string => `- &a${index} [${`*a${index - 1},`.repeat(9)}]\n`;
    const laughs = `- &a0 [lol]\n${[1, 2, 3, 4, 5, 6, 7, 8, 9].map(line).join('')}`;
    assert.deepEqual(read(laughs), { kind: 'aliases' });
    const large = `- &a [${'1,'.repeat(4998)}1]\n`;
    assert.equal((read(`${large}- *a\n- *a\n`) as YamlData).kind, 'data');
    assert.deepEqual(read(`${large}- *a\n- *a\n- *a\n`), { kind: 'aliases' });
  });

  it('rejects aliases that nest too deeply', () => {
    const nested = (depth: number, inner: string): string => '['.repeat(depth) + inner + ']'.repeat(depth);
    const text = (depth: number): string => `- &a ${nested(150, '')}\n- ${nested(depth, '*a')}\n`;
    assert.equal((read(text(49)) as YamlData).kind, 'data');
    assert.deepEqual(read(text(50)), { kind: 'too-deep' });
  });
});
